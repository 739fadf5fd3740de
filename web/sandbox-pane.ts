import { ApolloSandbox } from '@apollo/sandbox';
import { clientHeaders } from './client.ts';
import { examples, linkedOperation } from './examples.ts';
import { freshToken, withToken } from './session.ts';
import { home } from './settings.ts';

const ORIGIN = 'https://sandbox.embed.apollographql.com';
/** What the frame says first when it runs. */
const GREETING = 'ExplorerListeningForHandshake';
/** What the frame asks the page to subscribe to. */
const SUBSCRIPTION = 'ExplorerSubscriptionRequest';
/** Maximum time to wait for the greeting, in ms. */
const PATIENCE_MS = 10_000;
/** Stands for the credential of the bar, which itself stays on this page: what the frame is given goes to its makers. */
const SIGNED_IN = 'Bearer of-who-is-signed-in-above';

/** Loads Apollo Sandbox into the element. Returns whether its frame has answered; if not, the frame is gone again. */
export async function loadSandbox(target: HTMLElement): Promise<boolean> {
  if (!navigator.onLine) return false;
  const { query, variables } = linkedOperation() ?? examples[0];
  // The first listener, so that it comes before the one of the sandbox.
  addEventListener('message', authorizeSubscription);
  const sandbox = new QuietSandbox({
    target,
    initialEndpoint: `${home}/graphql`,
    initialState: { document: query, variables: parsed(variables), headers: { Authorization: SIGNED_IN } },
    endpointIsEditable: false,
    runTelemetry: false,
    allowDynamicStyles: false,
    handleRequest: (address, options) => {
      const send = (token?: string): Promise<Response> =>
        fetch(address, { ...options, headers: { ...clientHeaders, ...withCredential(options.headers, token) } });
      return Object.values(options.headers).includes(SIGNED_IN) ? withToken(send) : send();
    },
  });
  sandbox.embeddedSandboxIFrameElement.title = 'Apollo Sandbox';
  const answered = await greeted(sandbox.embeddedSandboxIFrameElement);
  if (!answered) sandbox.dispose();
  return answered;
}

// The sandbox subscribes by a WebSocket of its own, with the headers of this message: it gets them with the credential in place.
function authorizeSubscription(message: MessageEvent<unknown>): void {
  const { origin, source, data } = message;
  if (origin !== ORIGIN || nameOf(data) !== SUBSCRIPTION) return;
  const { headers = {}, ...request } = data as { headers?: Record<string, string> };
  if (!Object.values(headers).includes(SIGNED_IN)) return;
  message.stopImmediatePropagation();
  const send = (token?: string): void => {
    dispatchEvent(new MessageEvent('message', { origin, source, data: { ...request, headers: withCredential(headers, token) } }));
  };
  void freshToken().then(send, () => send());
}

/** The sandbox looks for an icon at the root of our origin, where under BASE_PATH somebody else may live. */
class QuietSandbox extends ApolloSandbox {
  override injectEmbed(): HTMLIFrameElement {
    const { fetch } = globalThis;
    globalThis.fetch = () => Promise.reject(new TypeError('not asked'));
    try {
      return super.injectEmbed();
    } finally {
      globalThis.fetch = fetch;
    }
  }
}

// A frame does not report that it could not be loaded, or that an error page was.
function greeted(frame: HTMLIFrameElement): Promise<boolean> {
  return new Promise((done) => {
    const end = (answered: boolean): void => {
      removeEventListener('message', hear);
      clearTimeout(timer);
      done(answered);
    };
    const hear = ({ origin, source, data }: MessageEvent<unknown>): void => {
      if (origin === ORIGIN && source === frame.contentWindow && nameOf(data) === GREETING) end(true);
    };
    const timer = setTimeout(() => end(false), PATIENCE_MS);
    addEventListener('message', hear);
  });
}

function nameOf(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'name' in data ? data.name : undefined;
}

function withCredential(headers: Record<string, string>, token: string | undefined): Record<string, string> {
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
