import type { IncomingMessage } from 'node:http';
import type { DomainError } from '../../core/errors.ts';
import type { HttpError } from '../../http/http-error.ts';
import type { Dependencies } from '../../http/dependencies.ts';
import type { SubscriptionRegistry } from './registry.ts';
import type { Subscriptions } from './subscription.ts';
import type { TrustedDocuments } from '../trusted-documents.ts';

/** Error format of the GraphQL API. */
export const ERROR_FORMAT = { endpoint: 'graphql', errorKey: 'errors', inputPart: 'body' } as const;

/** State shared by the WebSocket and server-sent events transports. */
export interface SubscriptionConnections {
  dependencies: Dependencies;
  registry: SubscriptionRegistry;
  /** Returns whether new WebSockets and their subscriptions are rejected. */
  isOverloaded: () => boolean;
  /** Errors of WebSocket handshakes that were rejected, for their responses. */
  upgradeErrors: WeakMap<IncomingMessage, DomainError | HttpError>;
  subscriptions: Subscriptions;
  /** Undefined if any document may run. */
  trusted: TrustedDocuments | undefined;
}
