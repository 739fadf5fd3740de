import './explorer.css';
import { showBar } from './bar.ts';
import { byId, element } from './dom.ts';
import { showSandbox } from './sandbox-pane.ts';

await showBar();
const explorer = byId('explorer');
const giveUp = new AbortController();
const notice = element(
  'p',
  { className: 'notice', role: 'status' },
  'Apollo Sandbox is on its way. ',
  element('button', { type: 'button', onclick: () => giveUp.abort() }, 'Use GraphiQL instead'),
);
explorer.before(notice);
if (await showSandbox(explorer, giveUp.signal)) {
  notice.remove();
} else {
  const { showGraphiql } = await import('./graphiql-pane.tsx');
  notice.replaceChildren(
    'Apollo Sandbox comes from another site, which cannot be reached from here. This is GraphiQL, which comes from this server. ',
    element('button', { type: 'button', onclick: () => location.reload() }, 'Try again'),
  );
  showGraphiql(explorer);
}
