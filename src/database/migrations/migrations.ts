import { Migration20261121000000_initial } from './20261121000000_initial.ts';
import { Migration20261122000000_tally } from './20261122000000_tally.ts';
import { Migration20261122000001_items_in_order } from './20261122000001_items_in_order.ts';
import { Migration20261123000000_legacy_call } from './20261123000000_legacy_call.ts';
import { Migration20261124000000_search } from './20261124000000_search.ts';
import { Migration20261125000000_import } from './20261125000000_import.ts';
import { Migration20261126000000_accounts } from './20261126000000_accounts.ts';
import { Migration20261127000000_change } from './20261127000000_change.ts';
import { Migration20261128000000_webhook } from './20261128000000_webhook.ts';
import { Migration20261129000000_audit } from './20261129000000_audit.ts';
import { Migration20261130000000_webhook_sweep } from './20261130000000_webhook_sweep.ts';
import { Migration20261201000000_refresh } from './20261201000000_refresh.ts';

/** The migrations, oldest first. Add new ones at the end; never change one that was merged. */
export const migrations = [
  { name: '20261121000000_initial', class: Migration20261121000000_initial },
  { name: '20261122000000_tally', class: Migration20261122000000_tally },
  { name: '20261122000001_items_in_order', class: Migration20261122000001_items_in_order },
  { name: '20261123000000_legacy_call', class: Migration20261123000000_legacy_call },
  { name: '20261124000000_search', class: Migration20261124000000_search },
  { name: '20261125000000_import', class: Migration20261125000000_import },
  { name: '20261126000000_accounts', class: Migration20261126000000_accounts },
  { name: '20261127000000_change', class: Migration20261127000000_change },
  { name: '20261128000000_webhook', class: Migration20261128000000_webhook },
  { name: '20261129000000_audit', class: Migration20261129000000_audit },
  { name: '20261130000000_webhook_sweep', class: Migration20261130000000_webhook_sweep },
  { name: '20261201000000_refresh', class: Migration20261201000000_refresh },
];
