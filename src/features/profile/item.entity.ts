import {
  Check,
  Entity,
  Index,
  ManyToOne,
  PrimaryKey,
  Property,
  Unique,
} from '@mikro-orm/decorators/legacy';
import { BigIntType } from '@mikro-orm/postgresql';
import { Field, ObjectType } from 'type-graphql';
import { Node } from '../../api/node.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { User } from '../users/user.entity.ts';

/** An item of a user, identified by the user's own name for it. */
@Entity({ tableName: 'item' })
@Check({
  name: 'item_item_id_check',
  expression: `char_length(item_id) >= 1 and char_length(item_id) <= 255 and item_id !~ '[[:cntrl:]]'`,
})
@Unique({ name: 'item_owner_pk_item_id_unique', properties: ['ownerPk', 'itemId'] })
@Index({ name: 'item_owner_pk_pk_index', properties: ['ownerPk', 'pk'] })
@ObjectType({ simpleResolvers: true, implements: Node, description: 'An item of a user.' })
export class Item extends Node {
  @PrimaryKey({ type: new BigIntType('number'), autoincrement: true })
  pk!: number;

  @ManyToOne(() => User, {
    mapToPk: true,
    fieldName: 'owner_pk',
    deleteRule: 'cascade',
    updateRule: 'no action',
  })
  ownerPk!: number;

  @Property({ type: 'text' })
  @Field(() => String, {
    description: "The user's own name for the item, one line of 1 to 255 characters.",
  })
  itemId!: string;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the item was added.' })
  createdAt!: Date;

  protected get nodeKey(): number {
    return this.pk;
  }
}
