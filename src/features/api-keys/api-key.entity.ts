import { Check, Entity, Index, ManyToOne, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { Field, ObjectType } from 'type-graphql';
import { Node } from '../../api/node.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import type { Scope } from '../../core/scopes.ts';
import { User } from '../users/user.entity.ts';

/** What a machine calls with in the name of a user, without a password and without a session. */
@Entity({ tableName: 'api_key' })
@Check({ name: 'api_key_name_check', expression: `char_length(name) >= 1 and char_length(name) <= 100 and name !~ '[[:cntrl:]]'` })
@Check({ name: 'api_key_key_hash_check', expression: `octet_length(key_hash) = 32` })
@Check({ name: 'api_key_times_check', expression: `created_at < expires_at` })
@Index({ name: 'api_key_user_pk_created_at_index', properties: ['userPk', 'createdAt', 'kid'] })
@Index({ name: 'api_key_expires_at_index', properties: ['expiresAt'] })
@ObjectType({
  simpleResolvers: true,
  implements: Node,
  description: 'What a machine calls with in the name of a user. The key itself is shown once.',
})
export class ApiKey extends Node {
  @PrimaryKey({ columnType: 'uuid', type: 'string' })
  kid!: string;

  @ManyToOne(() => User, { mapToPk: true, fieldName: 'user_pk', deleteRule: 'cascade', updateRule: 'no action' })
  userPk!: number;

  @Property({ type: 'text' })
  @Field(() => String, { description: 'What it is for, in the words of its owner.' })
  name!: string;

  /** SHA-256 of the key, which itself is not stored. */
  @Property({ columnType: 'bytea', type: 'Buffer', unique: true, hidden: true, lazy: true })
  keyHash!: Buffer;

  @Property({ columnType: 'text[]' })
  @Field(() => [String], { description: 'What it may do, as far as its owner may at that moment.' })
  scopes!: Scope[];

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When it was made.' })
  createdAt!: Date;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When it stops being good.' })
  expiresAt!: Date;

  @Property({ columnType: 'timestamptz(3)', nullable: true })
  @Field(() => DateTimeScalar, { nullable: true, description: 'When it was last used, to the minute; null where it never was.' })
  lastUsedAt!: Date | null;

  protected get nodeKey(): string {
    return this.kid;
  }
}
