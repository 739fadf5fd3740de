import { ApolloSandbox } from '@apollo/sandbox';
import { examples, linkedOperation } from './examples.ts';
import { currentSession } from './session.ts';
import { home } from './settings.ts';

const ORIGIN = 'https://sandbox.embed.apollographql.com';
/** What the frame says first when it runs. */
const GREETING = 'ExplorerListeningForHandshake';
/** How long to wait for it. */
const PATIENCE_MS = 4_000;
/** Stands for the credential of the bar, which itself stays on this page: what the frame is given goes to its makers. */
const SIGNED_IN = 'Bearer of-who-is-signed-in-above';

/** Shows Apollo Sandbox in the element. Answers whether it came; if it did not, the element is as it was. */
export async function showSandbox(parent: HTMLElement, giveUp: AbortSignal): Promise<boolean> {
  if (!navigator.onLine) return false;
  const { query, variables } = linkedOperation() ?? examples[0];
  const sandbox = new QuietSandbox({
    target: parent,
    initialEndpoint: `${home}/graphql`,
    initialState: { document: query, variables: parsed(variables), headers: { Authorization: SIGNED_IN } },
    endpointIsEditable: false,
    runTelemetry: false,
    allowDynamicStyles: false,
    handleRequest: (address, options) => fetch(address, { ...options, headers: withCredential(options.headers) }),
  });
  sandbox.embeddedSandboxIFrameElement.title = 'Apollo Sandbox';
  const came = await greeted(sandbox.embeddedSandboxIFrameElement, giveUp);
  if (!came) sandbox.dispose();
  return came;
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

// A frame does not say that it could not be loaded: only silence does.
function greeted(frame: HTMLIFrameElement, giveUp: AbortSignal): Promise<boolean> {
  return new Promise((done) => {
    const end = (came: boolean): void => {
      removeEventListener('message', hear);
      clearTimeout(timer);
      done(came);
    };
    const hear = ({ origin, source, data }: MessageEvent<unknown>): void => {
      if (origin === ORIGIN && source === frame.contentWindow && nameOf(data) === GREETING) end(true);
    };
    const timer = setTimeout(() => end(false), PATIENCE_MS);
    addEventListener('message', hear);
    giveUp.addEventListener('abort', () => end(false));
  });
}

function nameOf(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'name' in data ? data.name : undefined;
}

function withCredential(headers: Record<string, string>): Record<string, string> {
  const session = currentSession();
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      if (value !== SIGNED_IN) return [[name, value]];
      return session ? [[name, `Bearer ${session.token}`]] : [];
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
