import './explorer.css';
import { showBar } from './bar.ts';
import { byId } from './dom.ts';
import { showGraphiql } from './graphiql-pane.tsx';

await showBar();
showGraphiql(byId('explorer'));
