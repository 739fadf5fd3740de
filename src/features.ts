import { AccountResolver } from './accounts/account.resolver.ts';
import { PasswordReset } from './accounts/password-reset.entity.ts';
import * as passwordReset from './accounts/password-reset.service.ts';
import { Registration } from './accounts/registration.entity.ts';
import * as registration from './accounts/registration.service.ts';
import { ApiKey } from './api-keys/api-key.entity.ts';
import { ApiKeyResolver, UserApiKeysResolver } from './api-keys/api-key.resolver.ts';
import * as apiKeys from './api-keys/api-key.service.ts';
import { AuditEntry } from './audit/audit.entity.ts';
import { AuditEntryResolver } from './audit/audit.resolver.ts';
import * as audit from './audit/audit.service.ts';
import { AuthResolver, SessionResolver, UserSessionsResolver } from './auth/auth.resolver.ts';
import { authRoutes } from './auth/auth.routes.ts';
import * as auth from './auth/auth.service.ts';
import { LoginFailure } from './auth/login-failure.entity.ts';
import { Session } from './auth/session.entity.ts';
import { SessionSubscription } from './auth/session.subscription.ts';
import { sessionEvents } from './auth/session.events.ts';
import * as sessions from './auth/session.service.ts';
import { BlogEntry } from './blog/blog-entry.entity.ts';
import { BlogEntryResolver, UserBlogResolver } from './blog/blog.resolver.ts';
import { blogRoutes } from './blog/blog.routes.ts';
import * as blog from './blog/blog.service.ts';
import { IdempotencyKey } from './idempotency/idempotency-key.entity.ts';
import * as idempotency from './idempotency/idempotency.service.ts';
import { ChangeRow } from './changes/change.entity.ts';
import * as changes from './changes/change.log.ts';
import type { TellEvent } from './kit/event.ts';
import type { Feature } from './kit/feature.ts';
import type { DraftLetter } from './kit/letter.ts';
import { LegacyCall } from './legacy/legacy-call.entity.ts';
import * as legacy from './legacy/legacy.service.ts';
import { MailCount } from './mail/mail-count.entity.ts';
import { Mail } from './mail/mail.entity.ts';
import * as mail from './mail/mail.service.ts';
import { ProductImportBatch } from './products/product-import-batch.entity.ts';
import { ProductTally, ProductTallyFine } from './products/product-tally.entity.ts';
import { ProductWord } from './products/product-word.entity.ts';
import { Product } from './products/product.entity.ts';
import { productEvents } from './products/product.events.ts';
import * as productImport from './products/product.import.ts';
import { productPlans } from './products/product.plans.ts';
import { ProductResolver } from './products/product.resolver.ts';
import { productRoutes } from './products/product.routes.ts';
import * as products from './products/product.service.ts';
import { ProductSubscription } from './products/product.subscription.ts';
import { Item } from './profile/item.entity.ts';
import { ItemResolver, UserItemsResolver } from './profile/profile.resolver.ts';
import { profileRoutes } from './profile/profile.routes.ts';
import * as profile from './profile/profile.service.ts';
import { User } from './users/user.entity.ts';
import { UserResolver } from './users/user.resolver.ts';
import { userRoutes } from './users/user.routes.ts';
import * as users from './users/user.service.ts';
import * as webhookDeliveries from './webhooks/delivery.service.ts';
import { WebhookDelivery } from './webhooks/webhook-delivery.entity.ts';
import { WebhookPlace } from './webhooks/webhook-place.entity.ts';
import { Webhook } from './webhooks/webhook.entity.ts';
import * as webhooks from './webhooks/webhook.service.ts';

/** The features, one a line: everything else in the house is made from this list. */
export const features: readonly Feature[] = [
  {
    title: 'Catalogue',
    description: 'The products of the shop.',
    entities: [Product, ProductTally, ProductTallyFine, ProductWord, ProductImportBatch],
    resolvers: [ProductResolver, ProductSubscription],
    routes: productRoutes,
    nodes: { Product: products.findNodes },
    plans: productPlans,
    events: productEvents,
    sweep: productImport.sweep,
  },
  {
    title: 'Users',
    description: 'Everyone who can sign in.',
    entities: [User],
    resolvers: [UserResolver],
    routes: userRoutes,
    nodes: { User: users.findNodes },
  },
  {
    title: 'Signing in and out',
    description: 'Access tokens and session keys, either of which every other endpoint accepts.',
    entities: [Session, LoginFailure],
    resolvers: [AuthResolver, UserSessionsResolver, SessionResolver, SessionSubscription],
    routes: authRoutes,
    nodes: { Session: sessions.findNodes },
    events: sessionEvents,
    sweep: auth.sweep,
  },
  {
    entities: [Registration, PasswordReset],
    resolvers: [AccountResolver],
    letters: {
      registration: registration.draft,
      [passwordReset.RESET]: passwordReset.draft,
      [passwordReset.RESET_OF_ONE]: passwordReset.draftOfOne,
      [passwordReset.PASSWORD_CHANGED]: passwordReset.draftChanged,
    },
    sweep: async (ctx) => (await registration.sweep(ctx)) + (await passwordReset.sweep(ctx)),
  },
  {
    entities: [ApiKey],
    resolvers: [ApiKeyResolver, UserApiKeysResolver],
    nodes: { ApiKey: apiKeys.findNodes },
    sweep: apiKeys.sweep,
  },
  { entities: [Mail, MailCount], sweep: mail.sweep },
  { entities: [IdempotencyKey], sweep: idempotency.sweep },
  { entities: [ChangeRow], sweep: changes.sweep },
  { entities: [AuditEntry], resolvers: [AuditEntryResolver], nodes: { AuditEntry: audit.findNodes } },
  {
    title: 'The signed-in user',
    description: 'What belongs to the user whose credentials a request has.',
    entities: [Item],
    resolvers: [UserItemsResolver, ItemResolver],
    routes: profileRoutes,
    nodes: { Item: profile.findNodes },
  },
  {
    title: 'Blog',
    description: 'Entries that users write.',
    entities: [BlogEntry],
    resolvers: [UserBlogResolver, BlogEntryResolver],
    routes: blogRoutes,
    nodes: { BlogEntry: blog.findNodes },
  },
  { entities: [LegacyCall], sweep: legacy.sweep },
  { entities: [Webhook, WebhookPlace, WebhookDelivery], events: webhooks.events, sweep: webhookDeliveries.sweep },
];

/** The entities of all features. */
export const entities = features.flatMap(({ entities: own = [] }) => [...own]);

/** Who drafts the mails of all features, by their kind. */
export const letters = Object.assign({}, ...features.map(({ letters: own = {} }) => own)) as Readonly<Record<string, DraftLetter>>;

/** What webhooks tell of the events of all features, by their kind. */
export const events = Object.assign({}, ...features.map(({ events: own = {} }) => own)) as Readonly<Record<string, TellEvent>>;
