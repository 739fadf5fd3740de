import {
  Check,
  Entity,
  Index,
  ManyToOne,
  PrimaryKey,
  Property,
} from '@mikro-orm/decorators/legacy';
import { Field, ObjectType } from 'type-graphql';
import { Node } from '../../../api/node.ts';
import { DateTimeScalar } from '../../../api/scalars.ts';
import type { Scope } from '../../../core/scopes.ts';
import { User } from '../../users/user.entity.ts';

/** One login. Its session key, access tokens and refresh tokens end with it. */
@Entity({ tableName: 'session' })
@Check({ name: 'session_key_hash_check', expression: `octet_length(key_hash) = 32` })
@Check({
  name: 'session_times_check',
  expression: `created_at <= last_seen_at and created_at < expires_at`,
})
@Check({ name: 'session_refresh_generation_check', expression: `refresh_generation >= 0` })
@Check({ name: 'session_refresh_salt_check', expression: `octet_length(refresh_salt) = 32` })
@Check({ name: 'session_user_agent_check', expression: `char_length(user_agent) <= 255` })
@Index({ name: 'session_user_pk_created_at_index', properties: ['userPk', 'createdAt', 'sid'] })
@Index({ name: 'session_expires_at_index', properties: ['expiresAt'] })
@ObjectType({
  simpleResolvers: true,
  implements: Node,
  description: 'One login of a user, until it is ended or expires.',
})
export class Session extends Node {
  /** The claim of the same name in tokens. */
  @PrimaryKey({ columnType: 'uuid', type: 'string' })
  sid!: string;

  @ManyToOne(() => User, {
    mapToPk: true,
    fieldName: 'user_pk',
    deleteRule: 'cascade',
    updateRule: 'no action',
  })
  userPk!: number;

  /** SHA-256 of the session key; the key is not stored. */
  @Property({ columnType: 'bytea', type: 'Buffer', unique: true, hidden: true, lazy: true })
  keyHash!: Buffer;

  /** The scopes to which the login limited the session; null for all scopes of the user. */
  @Property({ columnType: 'text[]', nullable: true })
  scopes!: Scope[] | null;

  /** Number of rotations of the refresh token. A token of an earlier generation was used before. */
  @Property({ type: 'integer', default: 0 })
  refreshGeneration: number = 0;

  /** When the refresh token was last rotated. */
  @Property({ columnType: 'timestamptz(3)', nullable: true })
  refreshedAt: Date | null = null;

  /**
   * 256 random bits from which, with the refresh token, the session key of a refresh is derived;
   * null for other keys.
   */
  @Property({ columnType: 'bytea', type: 'Buffer', nullable: true, hidden: true, lazy: true })
  refreshSalt: Buffer | null = null;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the user signed in.' })
  createdAt!: Date;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the session was last used, to the minute.' })
  lastSeenAt!: Date;

  /** The end of the idle or of the absolute lifetime, whichever is earlier. */
  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the session expires if it is not used again.' })
  expiresAt!: Date;

  /** When the user was disabled. The row stays until it expires: its key gets INACTIVE_USER. */
  @Property({ columnType: 'timestamptz(3)', nullable: true })
  endedAt!: Date | null;

  @Property({ type: 'text', nullable: true })
  @Field(() => String, {
    nullable: true,
    description: 'The User-Agent of the login.',
  })
  userAgent!: string | null;

  protected get nodeKey(): string {
    return this.sid;
  }
}
