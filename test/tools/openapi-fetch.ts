import createClient from 'openapi-fetch';
import type { paths } from './generated/openapi-typescript.js';

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

/** Calls every operation with the types of openapi-typescript. Returns statuses by method and path. */
export async function callAll(baseUrl: string): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  const client = createClient<paths>({ baseUrl });
  client.use({
    onResponse: ({ request, schemaPath, response }) =>
      void (statuses[`${request.method} ${schemaPath}`] = response.status),
  });

  const login = { username: 'alice', password: 'alice-demo-1' };
  const { data: token } = await client.POST('/token', {
    body: { ...login, scope: 'products:write offline_access' },
    headers: FORM,
  });
  const refreshed = await client.POST('/login', {
    body: { grant_type: 'refresh_token', refresh_token: token?.refresh_token ?? '' },
    headers: FORM,
  });
  const headers = { Authorization: `Bearer ${refreshed.data?.access_token}` };

  const created = await client.POST('/api/v1/shop/product/', {
    body: { name: 'Brass Kettle', barcode: '4006381333931', price: 24.5 },
    params: { header: { 'Idempotency-Key': 'openapi-fetch' } },
    headers,
  });
  const pk: number = created.data?.pk ?? 0;
  const { data: same } = await client.GET('/api/v1/shop/product/{pk}', {
    params: { path: { pk } },
  });
  same?.price.toFixed(2);
  const { data: all } = await client.GET('/api/v1/shop/products');
  all?.map(({ name, barcode }) => name + barcode);
  const { data: page } = await client.GET('/api/v2/shop/products', {
    params: { query: { limit: 5, offset: 10 } },
  });
  page?.next?.startsWith(baseUrl);

  const { data: me, error } = await client.GET('/users/me/', { headers });
  (me?.full_name ?? error?.detail)?.trim();
  const { data: items } = await client.GET('/users/me/items/', { headers });
  items?.map(({ item_id, owner }) => item_id + owner);
  const { data: entries } = await client.GET('/blog', { headers });
  entries?.filter(({ published, creator }) => published && creator.email !== null);
  const { data: users } = await client.GET('/api/users', {
    params: { query: { page: 1 } },
    headers,
  });
  users?.items.filter(({ disabled }) => !disabled);

  const { data: session } = await client.POST('/session/login', { body: login });
  await client.POST('/session/logout', { body: { session_key: session?.session_key ?? '' } });
  const { data: other } = await client.GET('/api/v2/auth/login', { params: { query: login } });
  const { data: ended } = await client.POST('/api/v2/auth/login', {
    body: { session_key: other?.session_key },
  });
  if (ended && 'detail' in ended) ended.detail.trim();
  return statuses;
}
