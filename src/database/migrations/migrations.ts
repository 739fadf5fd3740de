import { Migration20261121000000_initial } from './20261121000000_initial.ts';
import { Migration20261122000000_tally } from './20261122000000_tally.ts';
import { Migration20261122000001_items_in_order } from './20261122000001_items_in_order.ts';
import { Migration20261123000000_legacy_call } from './20261123000000_legacy_call.ts';

/** The migrations, the oldest first. A new one is added at the end; one that has landed is never changed. */
export const migrations = [
  { name: '20261121000000_initial', class: Migration20261121000000_initial },
  { name: '20261122000000_tally', class: Migration20261122000000_tally },
  { name: '20261122000001_items_in_order', class: Migration20261122000001_items_in_order },
  { name: '20261123000000_legacy_call', class: Migration20261123000000_legacy_call },
];
