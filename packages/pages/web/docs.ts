import 'swagger-ui-dist/swagger-ui.css';
import './explorer.css';
import './reference.css';
import { showBar } from './bar.ts';
import { byId, element } from './dom.ts';
import { home } from './settings.ts';

await showBar();
const explorer = byId('explorer');
const [openapi, { showReference }] = await Promise.all([
  documentOf(`${home}/openapi.json`),
  import('./reference.ts'),
]);
if (openapi) showReference(explorer, openapi);
else
  explorer.append(
    element(
      'p',
      { className: 'notice', role: 'alert' },
      'The OpenAPI document could not be read. Try again in a moment.',
    ),
  );

async function documentOf(address: string): Promise<object | undefined> {
  try {
    const response = await fetch(address);
    return response.ok ? ((await response.json()) as object) : undefined;
  } catch {
    return undefined;
  }
}
