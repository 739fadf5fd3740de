import { AuthResolver, SessionResolver, UserSessionsResolver } from './auth/auth.resolver.ts';
import { authRoutes } from './auth/auth.routes.ts';
import * as auth from './auth/auth.service.ts';
import { LoginFailure } from './auth/login-failure.entity.ts';
import { Session } from './auth/session.entity.ts';
import * as sessions from './auth/session.service.ts';
import { BlogEntry } from './blog/blog-entry.entity.ts';
import { BlogEntryResolver, UserBlogResolver } from './blog/blog.resolver.ts';
import { blogRoutes } from './blog/blog.routes.ts';
import * as blog from './blog/blog.service.ts';
import { IdempotencyKey } from './idempotency/idempotency-key.entity.ts';
import * as idempotency from './idempotency/idempotency.service.ts';
import type { Feature } from './kit/feature.ts';
import { LegacyCall } from './legacy/legacy-call.entity.ts';
import * as legacy from './legacy/legacy.service.ts';
import { ProductTally, ProductTallyFine } from './products/product-tally.entity.ts';
import { Product } from './products/product.entity.ts';
import { productPlans } from './products/product.plans.ts';
import { ProductResolver } from './products/product.resolver.ts';
import { productRoutes } from './products/product.routes.ts';
import * as products from './products/product.service.ts';
import { Item } from './profile/item.entity.ts';
import { ItemResolver, UserItemsResolver } from './profile/profile.resolver.ts';
import { profileRoutes } from './profile/profile.routes.ts';
import * as profile from './profile/profile.service.ts';
import { User } from './users/user.entity.ts';
import { UserResolver } from './users/user.resolver.ts';
import { userRoutes } from './users/user.routes.ts';
import * as users from './users/user.service.ts';

/** The features, one a line: everything else in the house is made from this list. */
export const features: readonly Feature[] = [
  { title: 'Users', entities: [User], resolvers: [UserResolver], routes: userRoutes, nodes: { User: users.findNodes } },
  {
    title: 'Signing in and out',
    entities: [Session, LoginFailure],
    resolvers: [AuthResolver, UserSessionsResolver, SessionResolver],
    routes: authRoutes,
    nodes: { Session: sessions.findNodes },
    sweep: auth.sweep,
  },
  { entities: [IdempotencyKey], sweep: idempotency.sweep },
  {
    title: 'Catalogue',
    entities: [Product, ProductTally, ProductTallyFine],
    resolvers: [ProductResolver],
    routes: productRoutes,
    nodes: { Product: products.findNodes },
    plans: productPlans,
  },
  {
    title: 'The signed-in user',
    entities: [Item],
    resolvers: [UserItemsResolver, ItemResolver],
    routes: profileRoutes,
    nodes: { Item: profile.findNodes },
  },
  {
    title: 'Blog',
    entities: [BlogEntry],
    resolvers: [UserBlogResolver, BlogEntryResolver],
    routes: blogRoutes,
    nodes: { BlogEntry: blog.findNodes },
  },
  { entities: [LegacyCall], sweep: legacy.sweep },
];

/** The entities of all features. */
export const entities = features.flatMap(({ entities: own = [] }) => [...own]);
