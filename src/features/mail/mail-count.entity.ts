import { Entity, Index } from '@mikro-orm/decorators/legacy';
import { RateLimiterRow } from '../../database/rate-limiter.ts';

/**
 * Recent mail requests by network and sent mails by recipient: the table of the limiters
 * (limits.ts).
 */
@Entity({ tableName: 'mail_count' })
@Index({ name: 'mail_count_expire_index', properties: ['expire'] })
export class MailCount extends RateLimiterRow {}
