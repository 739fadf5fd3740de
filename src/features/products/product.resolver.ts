import { Arg, Args, Ctx, ID, Mutation, Query, Resolver } from 'type-graphql';
import { ConnectionArgs, connectionType, type Connection } from '../../api/connection.ts';
import type { Context } from '../../request/context.ts';
import { createAll, CreateProductResult } from './create-products.ts';
import { Product } from './product.entity.ts';
import {
  ProductDraft,
  ProductFilter,
  ProductInput,
  ProductOrder,
  ProductPatch,
} from './product.inputs.ts';
import { EAN13Scalar } from './product.scalars.ts';
import * as products from './product.service.ts';

const ProductConnection = connectionType(Product);

const PK = { description: 'The primary key of the product.' };

@Resolver(() => Product)
export class ProductResolver {
  @Query(() => Product, {
    nullable: true,
    description: 'The product with this primary key; null if there is none.',
  })
  product(@Ctx() ctx: Context, @Arg('pk', () => ID, PK) pk: string): Promise<Product | null> {
    return products.find(ctx, pk);
  }

  @Query(() => Product, {
    nullable: true,
    description: 'The product with this barcode; null if there is none.',
  })
  productByBarcode(
    @Ctx() ctx: Context,
    @Arg('barcode', () => EAN13Scalar, { description: 'The barcode.' }) barcode: unknown,
  ): Promise<Product | null> {
    return products.findByBarcode(ctx, barcode);
  }

  @Query(() => ProductConnection, { description: 'The catalogue, in cursor pages.' })
  async products(
    @Ctx() ctx: Context,
    @Args(() => ConnectionArgs) args: ConnectionArgs,
    @Arg('filter', () => ProductFilter, { nullable: true, description: 'Filter of the products.' })
    filter?: ProductFilter,
    @Arg('orderBy', () => ProductOrder, {
      nullable: true,
      description:
        'Order of the products; by default by primary key, or for a search the best matches first.',
    })
    orderBy?: ProductOrder,
  ): Promise<Connection<Product>> {
    return new ProductConnection(await products.page(ctx, args, filter, orderBy));
  }

  @Mutation(() => Product, { description: 'Adds a product. Needs the scope `products:write`.' })
  createProduct(
    @Ctx() ctx: Context,
    @Arg('input', () => ProductInput, { description: 'The product to add.' }) input: ProductInput,
  ): Promise<Product> {
    return products.create(ctx, input);
  }

  @Mutation(() => [CreateProductResult], {
    description:
      'Adds at most 100 products independently: a rejected product does not affect the others. Returns a result for each, in order. Needs the scope `products:write`.',
  })
  createProducts(
    @Ctx() ctx: Context,
    @Arg('inputs', () => [ProductDraft], {
      description: 'The products to add. Of two with the same barcode, the first is added.',
    })
    inputs: ProductDraft[],
  ): Promise<CreateProductResult[]> {
    return createAll(ctx, inputs);
  }

  @Mutation(() => Product, { description: 'Changes a product. Needs the scope `products:write`.' })
  updateProduct(
    @Ctx() ctx: Context,
    @Arg('pk', () => ID, PK) pk: string,
    @Arg('input', () => ProductPatch, { description: 'The changes.' }) input: ProductPatch,
  ): Promise<Product> {
    return products.update(ctx, pk, input);
  }

  @Mutation(() => Product, {
    description: 'Deletes a product and returns it. Needs the scope `products:write`.',
  })
  deleteProduct(@Ctx() ctx: Context, @Arg('pk', () => ID, PK) pk: string): Promise<Product> {
    return products.remove(ctx, pk);
  }
}
