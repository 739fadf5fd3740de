/** Maximum number of attempts while the shop responds 429 or 503. */
const MAX_ATTEMPTS = 4;
const RETRY_STATUSES = new Set([429, 503]);
const AUTH = '/api/v2/auth/login';

/** An error response of the shop: status and reason. */
export class RequestError extends Error {
  constructor(status, reason) {
    super(`${status}: ${reason}`);
    this.status = status;
    this.reason = reason;
  }
}

/** The three logins. `signIn` returns the headers with credentials; `signOut` ends the session. */
export const LOGINS = {
  token: {
    async signIn(shop, { username, password }) {
      const body = new URLSearchParams({ username, password });
      const { access_token } = await shop.read(await shop.send('POST', '/token', { body }));
      return { Authorization: `Bearer ${access_token}` };
    },
    signOut: async (shop, headers) => shop.read(await shop.send('POST', AUTH, { headers })),
  },
  session: {
    async signIn(shop, { username, password }) {
      const { session_key } = await shop.read(
        await shop.send('POST', '/session/login', json({ username, password })),
      );
      return { 'X-SESSION-ID': session_key };
    },
    signOut: async (shop, { 'X-SESSION-ID': session_key }) =>
      shop.read(await shop.send('POST', '/session/logout', json({ session_key }))),
  },
  'second version': {
    async signIn(shop, { username, password }) {
      const query = new URLSearchParams({ username, password });
      const { session_key } = await shop.read(await shop.send('GET', `${AUTH}?${query}`));
      return { 'X-SESSIONID': session_key };
    },
    signOut: async (shop, headers) => shop.read(await shop.send('POST', AUTH, { headers })),
  },
};

/** A client of the REST API. */
export class Shop {
  #baseUrl;
  #login;
  #user;
  #credentials;

  constructor(baseUrl) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
  }

  /** Signs in, and stores the user for signing in again. */
  async signIn(login, user) {
    this.#login = login;
    this.#user = user;
    this.#credentials = await login.signIn(this, user);
  }

  /** Ends the session, if there is one. */
  async signOut() {
    const credentials = this.#credentials;
    if (!credentials) return undefined;
    this.#credentials = undefined;
    return this.#login.signOut(this, credentials);
  }

  me() {
    return this.#request('GET', '/users/me/');
  }

  items() {
    return this.#request('GET', '/users/me/items/');
  }

  blog() {
    return this.#request('GET', '/blog');
  }

  /** Creates a product. Requests with the same key create it once. */
  create(product, key) {
    const { body, headers } = json(product);
    return this.#request('POST', '/api/v1/shop/product/', {
      body,
      headers: { ...headers, 'Idempotency-Key': key },
    });
  }

  async product(pk) {
    return this.read(await this.send('GET', `/api/v1/shop/product/${pk}`));
  }

  /** All products in pages, by following `next`. */
  async *pages() {
    for (let url = '/api/v2/shop/products?page=1'; url;) {
      const { items, next } = await this.read(await this.send('GET', url));
      yield items;
      url = next;
    }
  }

  /** All products in pages, by limit and offset. */
  async *offsetPages(limit) {
    for (let offset = 0; ; offset += limit) {
      const { items } = await this.read(
        await this.send('GET', `/api/v2/shop/products?limit=${limit}&offset=${offset}`),
      );
      if (items.length > 0) yield items;
      if (items.length < limit) return;
    }
  }

  /** All products, one by one, without the whole list in memory. */
  async *products() {
    const response = await this.send('GET', '/api/v1/shop/products');
    if (!response.ok) await this.read(response);
    let rest = '';
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      rest += text;
      let end = 0;
      // A product has no nested objects, but its name may have braces.
      for (const { 0: found, index } of rest.matchAll(/\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}/g)) {
        yield JSON.parse(found);
        end = index + found.length;
      }
      rest = rest.slice(end);
    }
  }

  /** Sends a request, and retries 429 and 503 after `Retry-After`. */
  async send(method, path, { headers = {}, body } = {}) {
    for (let attempt = 1; ; attempt++) {
      const response = await fetch(new URL(path.startsWith('/') ? this.#baseUrl + path : path), {
        method,
        headers,
        body,
      });
      if (!RETRY_STATUSES.has(response.status) || attempt === MAX_ATTEMPTS) return response;
      await response.body?.cancel();
      await seconds(Number(response.headers.get('Retry-After') ?? 1));
    }
  }

  /** Returns the body of a response. Throws RequestError for an error response. */
  async read(response) {
    const body = await response.json();
    if (response.ok) return body;
    const reason = body.detail ?? body.data;
    throw new RequestError(
      response.status,
      Array.isArray(reason)
        ? reason.map(({ loc, msg }) => `${loc.at(-1)}: ${msg}`).join('; ')
        : reason,
    );
  }

  // Signs in again, once, because credentials expire or are revoked.
  async #request(method, path, request = {}) {
    const send = () =>
      this.send(method, path, {
        ...request,
        headers: { ...request.headers, ...this.#credentials },
      });
    let response = await send();
    if (response.status === 401 && this.#credentials) {
      await response.body?.cancel();
      this.#credentials = await this.#login.signIn(this, this.#user);
      response = await send();
    }
    return this.read(response);
  }
}

function json(value) {
  return { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value) };
}

function seconds(count) {
  return new Promise((done) => {
    setTimeout(done, count * 1000);
  });
}
