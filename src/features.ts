import { PasswordReset } from './features/auth/passwords/password-reset.entity.ts';
import * as passwordReset from './features/auth/passwords/password-reset.service.ts';
import { Registration } from './features/auth/registration/registration.entity.ts';
import * as registration from './features/auth/registration/registration.service.ts';
import { ApiKey } from './features/api-keys/api-key.entity.ts';
import { ApiKeyResolver } from './features/api-keys/api-key.resolver.ts';
import * as apiKeys from './features/api-keys/api-key.service.ts';
import { AuditEntry } from './features/audit/audit.entity.ts';
import { AuditEntryResolver } from './features/audit/audit.resolver.ts';
import * as audit from './features/audit/audit.service.ts';
import { AccountResolver, AuthResolver, SessionResolver } from './features/auth/auth.resolver.ts';
import { authRoutes } from './features/auth/auth.routes.ts';
import * as auth from './features/auth/auth.service.ts';
import { LoginFailure } from './features/auth/login.ts';
import { Session } from './features/auth/sessions/session.entity.ts';
import * as sessions from './features/auth/sessions/session.service.ts';
import { BlogEntry } from './features/blog/blog-entry.entity.ts';
import { BlogEntryResolver, UserBlogResolver } from './features/blog/blog.resolver.ts';
import { blogRoutes } from './features/blog/blog.routes.ts';
import * as blog from './features/blog/blog.service.ts';
import { IdempotencyKey } from './features/idempotency/idempotency-key.entity.ts';
import * as idempotency from './features/idempotency/idempotency.service.ts';
import { ChangeRow } from './features/change-log/change.entity.ts';
import * as changeLog from './features/change-log/change-log.ts';
import type { Feature } from './api/feature.ts';
import { superviseJobs } from './database/jobs.ts';
import type { WriteMail } from './api/mail.ts';
import { RestCall } from './features/rest-usage/rest-call.entity.ts';
import { RestUsageResolver } from './features/rest-usage/rest-usage.resolver.ts';
import * as restUsage from './features/rest-usage/rest-usage.service.ts';
import { MailCount } from './features/mail/mail.service.ts';
import * as mails from './features/mail/mail-worker.ts';
import { openTransport } from './features/mail/transport.ts';
import { ProductRowCount } from './features/products/product-row-count.entity.ts';
import { ProductWord } from './features/products/search/product-word.entity.ts';
import { Product } from './features/products/product.entity.ts';
import { productCompiledFields } from './features/products/product.compiled-fields.ts';
import { ProductResolver } from './features/products/product.resolver.ts';
import { productRoutes } from './features/products/product.routes.ts';
import * as products from './features/products/product.service.ts';
import { ProductSubscription } from './features/products/product.subscription.ts';
import { Item } from './features/profile/item.entity.ts';
import { ItemResolver, UserItemsResolver } from './features/profile/profile.resolver.ts';
import { profileRoutes } from './features/profile/profile.routes.ts';
import * as profile from './features/profile/profile.service.ts';
import { User } from './features/users/user.entity.ts';
import { UserResolver } from './features/users/user.resolver.ts';
import { userRoutes } from './features/users/user.routes.ts';
import * as users from './features/users/user.service.ts';
import { DeliveryWorker } from './features/webhooks/delivery-worker.ts';
import { createHttpClient } from './features/webhooks/http-client.ts';
import { Webhook } from './features/webhooks/webhook.entity.ts';

/** All features; the schema, the REST endpoints and so on are built from this list. */
export const features: readonly Feature[] = [
  {
    title: 'Catalogue',
    description: 'The products of the shop.',
    entities: [Product, ProductRowCount, ProductWord],
    resolvers: [ProductResolver, ProductSubscription],
    routes: productRoutes,
    nodes: { Product: products.findNodes },
    compiledFields: productCompiledFields,
  },
  {
    title: 'Users',
    description: 'The users who can sign in.',
    entities: [User],
    resolvers: [UserResolver],
    routes: userRoutes,
    nodes: { User: users.findNodes },
  },
  {
    title: 'Authentication',
    description: 'Access tokens and session keys. Every other endpoint accepts either.',
    entities: [Session, LoginFailure],
    resolvers: [AuthResolver, SessionResolver],
    routes: authRoutes,
    nodes: { Session: sessions.findNodes },
    sweep: auth.sweep,
  },
  {
    entities: [Registration, PasswordReset],
    resolvers: [AccountResolver],
    mails: {
      registration: registration.writeMail,
      [passwordReset.RESET]: passwordReset.writeMail,
    },
    sweep: async (ctx) => (await registration.sweep(ctx)) + (await passwordReset.sweep(ctx)),
  },
  {
    entities: [ApiKey],
    resolvers: [ApiKeyResolver],
    nodes: { ApiKey: apiKeys.findNodes },
    sweep: apiKeys.sweep,
  },
  // The jobs of mails and webhooks.
  { sweep: superviseJobs },
  {
    entities: [MailCount],
    // Only these two features send mails.
    worker: (config, log) =>
      config.registration || config.passwordReset
        ? new mails.MailWorker(mailWriters, openTransport(config, log))
        : undefined,
    sweep: mails.sweep,
  },
  { entities: [IdempotencyKey], sweep: idempotency.sweep },
  { entities: [ChangeRow], sweep: changeLog.sweep },
  {
    entities: [AuditEntry],
    resolvers: [AuditEntryResolver],
    nodes: { AuditEntry: audit.findNodes },
    sweep: audit.sweep,
  },
  {
    title: 'Current user',
    description: 'The signed-in user and their items.',
    entities: [Item],
    resolvers: [UserItemsResolver, ItemResolver],
    routes: profileRoutes,
    nodes: { Item: profile.findNodes },
  },
  {
    title: 'Blog',
    description: 'Blog entries of the users.',
    entities: [BlogEntry],
    resolvers: [UserBlogResolver, BlogEntryResolver],
    routes: blogRoutes,
    nodes: { BlogEntry: blog.findNodes },
  },
  {
    entities: [RestCall],
    resolvers: [RestUsageResolver],
    sweep: restUsage.sweep,
  },
  {
    entities: [Webhook],
    worker: (config) => new DeliveryWorker(createHttpClient(config)),
  },
];

/** The entities of all features. */
export const entities = features.flatMap(({ entities: featureEntities = [] }) => [
  ...featureEntities,
]);

/** The writers of mails of all features, by kind. */
export const mailWriters = Object.assign(
  {},
  ...features.map(({ mails: writers = {} }) => writers),
) as Readonly<Record<string, WriteMail>>;
