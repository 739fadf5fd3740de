import { Entity, Index } from '@mikro-orm/decorators/legacy';
import { RateLimiterRow } from '../../../database/rate-limiter.ts';

/** Recent failed logins per account and network, and per network: the table of throttle.ts. */
@Entity({ tableName: 'login_failure' })
@Index({ name: 'login_failure_expire_index', properties: ['expire'] })
export class LoginFailure extends RateLimiterRow {}
