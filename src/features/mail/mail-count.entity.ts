import { Entity, Index } from '@mikro-orm/decorators/legacy';
import { LimiterRow } from '../../database/rate-limiter.ts';

/** How many mails were asked for from a network, and sent to a recipient, of late: the table of the limiters (limits.ts). */
@Entity({ tableName: 'mail_count' })
@Index({ name: 'mail_count_expire_index', properties: ['expire'] })
export class MailCount extends LimiterRow {}
