import { Arg, ID, Resolver, Root, Subscription } from 'type-graphql';
import type { Context } from '../../request/context.ts';
import { ProductChange, ProductChangeKind } from './product-change.ts';
import * as changes from './product-changes.ts';

type Asked = { args: changes.ProductChangesInput; context: Context };

@Resolver()
export class ProductSubscription {
  @Subscription(() => ProductChange, {
    subscribe: async ({ args, context }: Asked) => changes.follow(context, { ...args, after: args.after ?? context.resumeAfter }),
    description:
      'What happens to products, from now on or after a cursor, in order, whichever instance did it. A client that was away goes on after the last cursor that it has; `CHANGES_LOST` says that it was away for too long, and `FELL_BEHIND` that it reads too slowly.',
  })
  productChanged(
    @Root() change: ProductChange,
    @Arg('pks', () => [ID], { nullable: true, description: 'Only of products with these primary keys, at most 100, and of many.' })
    _pks?: string[] | null,
    @Arg('kinds', () => [ProductChangeKind], { nullable: true, description: 'Only of these kinds.' }) _kinds?: ProductChangeKind[] | null,
    @Arg('after', () => String, { nullable: true, description: 'The cursor of the last change that the client knows of.' })
    _after?: string | null,
  ): ProductChange {
    return change;
  }
}
