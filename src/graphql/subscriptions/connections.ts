import type { GraphQLSchema } from 'graphql';
import type { Services } from '../../http/dependencies.ts';
import type { Operations } from '../../telemetry/operations.ts';
import { Listeners } from './registry.ts';
import { Subscriptions } from './subscription.ts';
import type { TrustedDocuments } from '../trusted-documents.ts';

/** How the door words its errors. */
export const WORDING = { row: 'graphql', errorKey: 'errors', inputPart: 'body' } as const;
/** How long who is told of the end may take to read it, in ms. */
export const GRACE_MS = 5_000;

/** What both ways to listen share. */
export interface Live {
  services: Services;
  listeners: Listeners;
  subscriptions: Subscriptions;
  /** Undefined where any document may run. */
  trusted: TrustedDocuments | undefined;
}

/** Opens what both ways to listen share. */
export function openLive(services: Services, schema: GraphQLSchema, trusted: TrustedDocuments | undefined, operations: Operations): Live {
  return { services, listeners: new Listeners(services), subscriptions: new Subscriptions(schema, services, operations), trusted };
}
