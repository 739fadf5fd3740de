import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { Field, ObjectType } from 'type-graphql';
import { Node } from '../../../api/node.ts';
import { DateTimeScalar } from '../../../api/scalars.ts';
import type { Scope } from '../../../core/scopes.ts';
import { OwnerPk } from '../../users/user.entity.ts';

/** One login. Its session key, access tokens and refresh tokens end with it. */
@Entity({ tableName: 'session' })
@Index({ properties: ['userPk', 'createdAt', 'sid'] })
@ObjectType({
  simpleResolvers: true,
  implements: Node,
  description: 'One login of a user, until it is ended or expires.',
})
export class Session extends Node {
  /** The claim of the same name in tokens. */
  @PrimaryKey({ columnType: 'uuid', type: 'string' })
  sid!: string;

  @OwnerPk('user_pk')
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

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the user signed in.' })
  createdAt!: Date;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the session was last used, to the minute.' })
  lastSeenAt!: Date;

  /** The end of the idle or of the absolute lifetime, whichever is earlier. */
  @Index()
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
