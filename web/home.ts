import { showBar } from './bar.ts';
import './home.css';
import { element } from './dom.ts';
import { home } from './settings.ts';

await showBar();
for (const code of document.querySelectorAll<HTMLElement>('.command code')) {
  // What stands there is PUBLIC_URL; the reader reaches us here.
  const command = (code.textContent ?? '').replaceAll(code.dataset['home'] ?? '', home);
  code.textContent = command;
  const copy = element('button', { type: 'button' }, 'Copy');
  copy.addEventListener('click', () => void copied(command).then((done) => (copy.textContent = done ? 'Copied' : 'Select it')));
  code.after(copy);
}

// Pages that came without TLS from elsewhere than this machine have no clipboard.
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
