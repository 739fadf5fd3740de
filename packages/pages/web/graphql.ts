import './explorer.css';
import { showBar } from './bar.ts';
import { byId, element } from './dom.ts';
import { showGraphiql } from './graphiql-pane.tsx';

await showBar();
const explorer = byId('explorer');
const graphiql = element('div', { className: 'pane' });
const sandbox = element('div', { className: 'pane', inert: true });
const notice = element('p', { className: 'notice', role: 'status' });
explorer.before(notice);
explorer.append(graphiql, sandbox);
const removeGraphiql = showGraphiql(graphiql);
let inUse = false;
for (const type of ['pointerdown', 'keydown'])
  graphiql.addEventListener(type, () => (inUse = true), { once: true });
// A frame that never loads must not delay the load event of the page.
if (document.readyState === 'complete') await trySandbox();
else addEventListener('load', () => void trySandbox());

async function trySandbox(): Promise<void> {
  notice.textContent =
    'Loading Apollo Sandbox from sandbox.embed.apollographql.com. GraphiQL is shown until it has loaded.';
  const { loadSandbox } = await import('./sandbox-pane.ts');
  if (!(await loadSandbox(sandbox))) {
    notice.replaceChildren(
      'Apollo Sandbox cannot be loaded from sandbox.embed.apollographql.com. GraphiQL is shown instead. ',
      button('Try again', () => void trySandbox()),
    );
  } else if (inUse) {
    // GraphiQL is not removed automatically while it is in use.
    notice.replaceChildren('Apollo Sandbox is ready. ', button('Show Apollo Sandbox', showSandbox));
  } else {
    showSandbox();
  }
}

function showSandbox(): void {
  notice.remove();
  removeGraphiql();
  graphiql.remove();
  sandbox.inert = false;
}

function button(text: string, onclick: () => void): HTMLButtonElement {
  return element('button', { type: 'button', onclick }, text);
}
