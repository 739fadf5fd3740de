import { Entity, Index, ManyToOne, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType } from '@mikro-orm/postgresql';
import { Field, ObjectType } from 'type-graphql';
import { Node } from '../../api/node.ts';
import type { Scope } from '../../core/scopes.ts';

/** An account. No new username has the same form as that of another user (`usernameForm`). */
@Entity({ tableName: 'user' })
@Index({
  name: 'user_email_index',
  expression: 'create index user_email_index on "user" (lower(email))',
})
@Index({
  name: 'user_username_key_index',
  expression: 'create index user_username_key_index on "user" (username_key(username))',
})
@ObjectType({ simpleResolvers: true, implements: Node, description: 'A user who can sign in.' })
export class User extends Node {
  @PrimaryKey({ type: new BigIntType('number'), autoincrement: true })
  pk!: number;

  @Property({ type: 'text', unique: true })
  @Field(() => String, { description: 'The username for the login.' })
  username!: string;

  @Property({ type: 'text', nullable: true })
  email!: string | null;

  @Property({ type: 'text', nullable: true })
  @Field(() => String, { nullable: true, description: 'The display name.' })
  fullName!: string | null;

  @Property({ type: 'boolean', default: false })
  @Field(() => Boolean, { description: 'Whether the user is disabled and cannot sign in.' })
  disabled: boolean = false;

  /** bcrypt hash; null for a user without a password. Never returned to clients. */
  @Property({ type: 'text', nullable: true, hidden: true })
  hashedPassword!: string | null;

  @Property({ columnType: 'text[]', default: [] })
  scopes: Scope[] = [];

  /** Set if the user is returned as the author of an entry. Not stored. */
  isAuthor?: true;

  protected get nodeKey(): number {
    return this.pk;
  }
}

/** Declares a column with the pk of a user, whose deletion also deletes the row. */
export function OwnerPk(fieldName: string): PropertyDecorator {
  const rules = { deleteRule: 'cascade', updateRule: 'no action' } as const;
  return ManyToOne(() => User, { mapToPk: true, fieldName, ...rules }) as PropertyDecorator;
}
