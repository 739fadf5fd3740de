import { ApolloSandbox } from '@apollo/sandbox';
import { clientHeaders } from './client.ts';
import { examples, linkedOperation } from './examples.ts';
import { freshToken, withToken } from './session.ts';
import { home } from './settings.ts';

const ORIGIN = 'https://sandbox.embed.apollographql.com';
/** The first message of the frame. */
const GREETING = 'ExplorerListeningForHandshake';
/** The message by which the frame requests a subscription. */
const SUBSCRIPTION = 'ExplorerSubscriptionRequest';
/** Maximum time to wait for the greeting, in ms. */
const GREETING_TIMEOUT_MS = 10_000;
/** Placeholder for the credential of the bar, which is not passed to the frame (another origin). */
const SIGNED_IN = 'Bearer of-the-signed-in-user';

/** Loads Apollo Sandbox into the element. Removes the frame and returns false if that fails. */
export async function loadSandbox(target: HTMLElement): Promise<boolean> {
  if (!navigator.onLine) return false;
  const { query, variables } = linkedOperation() ?? examples[0];
  // Added first, so that it runs before the listener of the sandbox.
  addEventListener('message', authorizeSubscription);
  const sandbox = new QuietSandbox({
    target,
    initialEndpoint: `${home}/graphql`,
    initialState: {
      document: query,
      variables: parsed(variables),
      headers: { Authorization: SIGNED_IN },
    },
    endpointIsEditable: false,
    runTelemetry: false,
    allowDynamicStyles: false,
    handleRequest: (address, options) => {
      const send = (token?: string): Promise<Response> =>
        fetch(address, {
          ...options,
          headers: { ...clientHeaders, ...withCredential(options.headers, token) },
        });
      return Object.values(options.headers).includes(SIGNED_IN) ? withToken(send) : send();
    },
  });
  sandbox.embeddedSandboxIFrameElement.title = 'Apollo Sandbox';
  const isLoaded = await greeted(sandbox.embeddedSandboxIFrameElement);
  if (!isLoaded) sandbox.dispose();
  return isLoaded;
}

// The sandbox opens its own WebSocket with the headers of this message. Inserts the credential.
function authorizeSubscription(message: MessageEvent<unknown>): void {
  const { origin, source, data } = message;
  if (origin !== ORIGIN || nameOf(data) !== SUBSCRIPTION) return;
  const { headers = {}, ...request } = data as { headers?: Record<string, string> };
  if (!Object.values(headers).includes(SIGNED_IN)) return;
  message.stopImmediatePropagation();
  const send = (token?: string): void => {
    dispatchEvent(
      new MessageEvent('message', {
        origin,
        source,
        data: { ...request, headers: withCredential(headers, token) },
      }),
    );
  };
  void freshToken().then(send, () => send());
}

/** Suppresses the request of the sandbox for an icon at the root, which is outside BASE_PATH. */
class QuietSandbox extends ApolloSandbox {
  override injectEmbed(): HTMLIFrameElement {
    const { fetch } = globalThis;
    globalThis.fetch = () => Promise.reject(new TypeError('Request suppressed'));
    try {
      return super.injectEmbed();
    } finally {
      globalThis.fetch = fetch;
    }
  }
}

// Waits for the greeting, because a frame does not report load errors or error pages.
function greeted(frame: HTMLIFrameElement): Promise<boolean> {
  return new Promise((done) => {
    const end = (isGreeted: boolean): void => {
      removeEventListener('message', onMessage);
      clearTimeout(timer);
      done(isGreeted);
    };
    const onMessage = ({ origin, source, data }: MessageEvent<unknown>): void => {
      if (origin === ORIGIN && source === frame.contentWindow && nameOf(data) === GREETING)
        end(true);
    };
    const timer = setTimeout(() => end(false), GREETING_TIMEOUT_MS);
    addEventListener('message', onMessage);
  });
}

function nameOf(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'name' in data ? data.name : undefined;
}

function withCredential(
  headers: Record<string, string>,
  token: string | undefined,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      if (value !== SIGNED_IN) return [[name, value]];
      return token === undefined ? [] : [[name, `Bearer ${token}`]];
    }),
  );
}

function parsed(variables: string): Record<string, never> {
  try {
    return JSON.parse(variables) as Record<string, never>;
  } catch {
    return {};
  }
}
