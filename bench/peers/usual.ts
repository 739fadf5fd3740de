import 'reflect-metadata';
import { ApolloServer } from '@apollo/server';
import { expressMiddleware } from '@as-integrations/express5';
import { Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType, DecimalType, MikroORM, type EntityManager } from '@mikro-orm/postgresql';
import express from 'express';
import {
  Arg,
  buildSchema,
  Ctx,
  Field,
  Float,
  ID,
  Int,
  ObjectType,
  Query,
  Resolver,
} from 'type-graphql';

// The packages that we build on, as their documentation shows them together.

@Entity({ tableName: 'product' })
@ObjectType()
class Product {
  @PrimaryKey({ type: new BigIntType('string') })
  @Field(() => ID)
  pk!: string;

  @Property({ type: 'text' })
  @Field(() => String)
  name!: string;

  @Property({ type: 'text' })
  @Field(() => String)
  barcode!: string;

  @Property({ type: new DecimalType('number') })
  @Field(() => Float)
  price!: number;
}

@ObjectType()
class ProductEdge {
  @Field(() => String)
  cursor!: string;

  @Field(() => Product)
  node!: Product;
}

@ObjectType()
class PageInfo {
  @Field(() => Boolean)
  hasNextPage!: boolean;

  @Field(() => String, { nullable: true })
  endCursor!: string | null;
}

@ObjectType()
class ProductConnection {
  @Field(() => [ProductEdge])
  edges!: ProductEdge[];

  @Field(() => PageInfo)
  pageInfo!: PageInfo;
}

@Resolver()
class ProductResolver {
  @Query(() => ProductConnection)
  async products(
    @Ctx() { em }: { em: EntityManager },
    @Arg('first', () => Int) first: number,
    @Arg('after', () => String, { nullable: true }) after?: string,
  ): Promise<ProductConnection> {
    const where = after ? { pk: { $gt: Buffer.from(after, 'base64url').toString() } } : {};
    const found = await em.find(Product, where, { orderBy: { pk: 'asc' }, limit: first + 1 });
    const edges = found
      .slice(0, first)
      .map((node) => ({ cursor: Buffer.from(node.pk).toString('base64url'), node }));
    const endCursor = edges.at(-1)?.cursor ?? null;
    return { edges, pageInfo: { hasNextPage: found.length > first, endCursor } };
  }
}

const orm = await MikroORM.init({
  entities: [Product],
  clientUrl: process.env['DATABASE_URL'] ?? '',
  pool: { max: 10 },
});
const schema = await buildSchema({ resolvers: [ProductResolver], validate: false });
// A GET request tells when it is ready.
const server = new ApolloServer<{ em: EntityManager }>({ schema, csrfPrevention: false });
await server.start();
const app = express();
const context = async () => ({ em: orm.em.fork() });
app.use('/graphql', express.json(), expressMiddleware(server, { context }));
app.listen(Number(process.env['PORT']), '127.0.0.1');
