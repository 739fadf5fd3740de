import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType } from '@mikro-orm/postgresql';
import { Field, ObjectType } from 'type-graphql';
import { Node } from '../../api/node.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { Weight } from '../../api/weight.ts';
import { OwnerPk } from '../users/user.entity.ts';

/** An entry of the blog. Only its creator sees it until it is published. */
@Entity({ tableName: 'blog_entry' })
@Index({ properties: ['createdAt', 'pk'] })
@Index({ properties: ['creatorPk', 'createdAt', 'pk'] })
@ObjectType({ simpleResolvers: true, implements: Node, description: 'An entry of the blog.' })
export class BlogEntry extends Node {
  @PrimaryKey({ type: new BigIntType('number'), autoincrement: true })
  pk!: number;

  @Property({ type: 'text' })
  @Field(() => String, { description: 'The title, one line of 1 to 255 characters.' })
  title!: string;

  @Property({ type: 'text' })
  @Weight(5)
  @Field(() => String, {
    description: 'The text, 1 to 50,000 characters. Counts as five objects in the cost of a query.',
  })
  body!: string;

  @Property({ type: 'boolean', default: false })
  @Field(() => Boolean, {
    description: 'Whether all signed-in users see the entry; otherwise only its creator does.',
  })
  published: boolean = false;

  @OwnerPk('creator_pk')
  creatorPk!: number;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the entry was created.' })
  createdAt!: Date;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the entry was last changed.' })
  updatedAt!: Date;

  protected get nodeKey(): number {
    return this.pk;
  }
}
