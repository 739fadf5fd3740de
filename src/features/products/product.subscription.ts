import { Arg, ID, Resolver, Root, Subscription } from 'type-graphql';
import type { Context } from '../../request/context.ts';
import {
  ProductChange,
  ProductChangeKind,
  subscribe,
  type ProductChangesInput,
} from './product-change.ts';

type SubscribeOptions = { args: ProductChangesInput; context: Context };

@Resolver()
export class ProductSubscription {
  @Subscription(() => ProductChange, {
    subscribe: async ({ args, context }: SubscribeOptions) =>
      subscribe(context, { ...args, after: args.after ?? context.resumeAfter }),
    description:
      'Changes of products on all instances, in order, from now on or after a cursor. To resume, pass the last cursor received. Ends with `CURSOR_EXPIRED` if the change log no longer has the changes after the cursor, and with `SLOW_CONSUMER` if the client reads too slowly.',
  })
  productChanged(
    @Root() change: ProductChange,
    @Arg('pks', () => [ID], {
      nullable: true,
      description:
        'Only changes of products with these primary keys, at most 100, and `BULK` changes.',
    })
    _pks?: string[] | null,
    @Arg('kinds', () => [ProductChangeKind], {
      nullable: true,
      description: 'Only changes of these kinds.',
    })
    _kinds?: ProductChangeKind[] | null,
    @Arg('after', () => String, {
      nullable: true,
      description: 'The cursor of the last change that the client received.',
    })
    _after?: string | null,
  ): ProductChange {
    return change;
  }
}
