import { showBar } from './bar.ts';
import './home.css';
import { element } from './dom.ts';
import { home } from './settings.ts';

await showBar();
for (const code of document.querySelectorAll<HTMLElement>('.command code')) {
  // The command has PUBLIC_URL; the address of this page works for the reader.
  const command = (code.textContent ?? '').replaceAll(code.dataset['home'] ?? '', home);
  code.textContent = command;
  const copy = element('button', { type: 'button' }, 'Copy');
  copy.addEventListener(
    'click',
    () => void copied(command).then((done) => (copy.textContent = done ? 'Copied' : 'Select it')),
  );
  code.after(copy);
}

// Without TLS, pages have a clipboard only if they are loaded from this machine.
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
