import * as shop from './generated/orval.js';

/** Calls every operation with the functions of orval. Returns statuses by function name. */
export async function callAll(): Promise<Record<string, number>> {
  const login: shop.PostTokenBody = { username: 'alice', password: 'alice-demo-1' };
  const token = await shop.postToken({ ...login, scope: 'products:write offline_access' });
  const refresh_token = token.status === 200 ? token.data.refresh_token : undefined;
  const refreshed = await shop.postLogin({
    grant_type: shop.PostLoginBodyGrantType.refresh_token,
    refresh_token,
  });
  const headers = {
    Authorization: `Bearer ${refreshed.status === 200 ? refreshed.data.access_token : ''}`,
  };

  const created = await shop.postApiV1ShopProduct(
    { name: 'Copper Kettle', barcode: '5901234123457', price: '24.50' },
    { headers: { ...headers, 'Idempotency-Key': 'orval' } },
  );
  const pk: number = created.status === 201 ? created.data.pk : 0;
  const got = await shop.getApiV1ShopProductPk(pk);
  const all = await shop.getApiV1ShopProducts();
  const page = await shop.getApiV2ShopProducts({ limit: 5, offset: 10 });

  const me = await shop.getUsersMe({ headers });
  const items = await shop.getUsersMeItems({ headers });
  const blog = await shop.getBlog({ headers });
  const users = await shop.getApiUsers({ page: 1 }, { headers });

  const session = await shop.postSessionLogin({ username: 'alice', password: 'alice-demo-1' });
  const logout = await shop.postSessionLogout({
    session_key: session.status === 200 ? session.data.session_key : '',
  });
  const other = await shop.getApiV2AuthLogin({ username: 'alice', password: 'alice-demo-1' });
  const ended = await shop.postApiV2AuthLogin({
    session_key: other.status === 200 ? other.data.session_key : '',
  });

  return {
    postToken: token.status,
    postLogin: refreshed.status,
    postApiV1ShopProduct: created.status,
    getApiV1ShopProductPk: got.status,
    getApiV1ShopProducts: all.status,
    getApiV2ShopProducts: page.status,
    getUsersMe: me.status,
    getUsersMeItems: items.status,
    getBlog: blog.status,
    getApiUsers: users.status,
    postSessionLogin: session.status,
    postSessionLogout: logout.status,
    getApiV2AuthLogin: other.status,
    postApiV2AuthLogin: ended.status,
  };
}
