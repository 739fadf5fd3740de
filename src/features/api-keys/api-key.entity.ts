import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { Field, ObjectType } from 'type-graphql';
import { Node } from '../../api/node.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import type { Scope } from '../../core/scopes.ts';
import { OwnerPk } from '../users/user.entity.ts';

/** Credentials with which a program acts as a user, without a password and a session. */
@Entity({ tableName: 'api_key' })
@Index({ properties: ['userPk', 'createdAt', 'keyId'] })
@ObjectType({
  simpleResolvers: true,
  implements: Node,
  description:
    'Credentials with which a program acts as a user. The key itself is returned only once.',
})
export class ApiKey extends Node {
  @PrimaryKey({ columnType: 'uuid', type: 'string' })
  keyId!: string;

  @OwnerPk('user_pk')
  userPk!: number;

  @Property({ type: 'text' })
  @Field(() => String, { description: 'The purpose of the key, as described by its user.' })
  name!: string;

  /** SHA-256 of the key; the key is not stored. */
  @Property({ columnType: 'bytea', type: 'Buffer', unique: true, hidden: true, lazy: true })
  keyHash!: Buffer;

  @Property({ columnType: 'text[]' })
  @Field(() => [String], {
    description: 'Scopes of the key. Only those that the user currently has are effective.',
  })
  scopes!: Scope[];

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the key was created.' })
  createdAt!: Date;

  @Index()
  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the key expires.' })
  expiresAt!: Date;

  @Property({ columnType: 'timestamptz(3)', nullable: true })
  @Field(() => DateTimeScalar, {
    nullable: true,
    description: 'When the key was last used, to the minute. Null for an unused key.',
  })
  lastUsedAt!: Date | null;

  protected get nodeKey(): string {
    return this.keyId;
  }
}
