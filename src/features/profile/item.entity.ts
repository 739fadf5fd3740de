import { Entity, Index, PrimaryKey, Property, Unique } from '@mikro-orm/decorators/legacy';
import { BigIntType, OptionalProps } from '@mikro-orm/postgresql';
import { Field, ObjectType } from 'type-graphql';
import { Node } from '../../api/node.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { OwnerPk } from '../users/user.entity.ts';

/** An item of a user, identified by the user's own name for it. */
@Entity({ tableName: 'item' })
@Index({ properties: ['ownerPk', 'pk'] })
@Unique({ name: 'item_owner_pk_item_id_unique', properties: ['ownerPk', 'itemId'] })
@ObjectType({ simpleResolvers: true, implements: Node, description: 'An item of a user.' })
export class Item extends Node {
  [OptionalProps]?: 'pk';

  @PrimaryKey({ type: new BigIntType('number'), autoincrement: true })
  pk!: number;

  @OwnerPk('owner_pk')
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
