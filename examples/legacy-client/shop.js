/** How often a request is sent at most when the shop is busy. */
const ATTEMPTS = 4;
const AGAIN_LATER = new Set([429, 503]);
const AUTH = '/api/v2/auth/login';

/** What the shop has refused: its status, and why. */
export class Refused extends Error {
  constructor(status, reason) {
    super(`${status}: ${reason}`);
    this.status = status;
    this.reason = reason;
  }
}

/** The three ways to sign in. Each says how to get credentials, as headers, and how to give them back. */
export const WAYS = {
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
      const { session_key } = await shop.read(await shop.send('POST', '/session/login', json({ username, password })));
      return { 'X-SESSION-ID': session_key };
    },
    signOut: async (shop, { 'X-SESSION-ID': session_key }) => shop.read(await shop.send('POST', '/session/logout', json({ session_key }))),
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

/** The shop, as a system that was written long ago knows it. */
export class Shop {
  #baseUrl;
  #way;
  #user;
  #credentials;

  constructor(baseUrl) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
  }

  /** Signs in by one of the ways; the user is kept for signing in again. */
  async signIn(way, user) {
    this.#way = way;
    this.#user = user;
    this.#credentials = await way.signIn(this, user);
  }

  /** Ends the session. Does nothing where there is none. */
  async signOut() {
    const credentials = this.#credentials;
    if (!credentials) return undefined;
    this.#credentials = undefined;
    return this.#way.signOut(this, credentials);
  }

  me() {
    return this.#ask('GET', '/users/me/');
  }

  items() {
    return this.#ask('GET', '/users/me/items/');
  }

  blog() {
    return this.#ask('GET', '/blog');
  }

  /** Adds a product. Sent again with the same key, it is added once only. */
  create(product, key) {
    const { body, headers } = json(product);
    return this.#ask('POST', '/api/v1/shop/product/', { body, headers: { ...headers, 'Idempotency-Key': key } });
  }

  async product(pk) {
    return this.read(await this.send('GET', `/api/v1/shop/product/${pk}`));
  }

  /** All products, page by page, by following `next`. */
  async *pages() {
    for (let url = '/api/v2/shop/products?page=1'; url;) {
      const { items, next } = await this.read(await this.send('GET', url));
      yield items;
      url = next;
    }
  }

  /** All products, part by part, by limit and offset. */
  async *parts(limit) {
    for (let offset = 0; ; offset += limit) {
      const { items } = await this.read(await this.send('GET', `/api/v2/shop/products?limit=${limit}&offset=${offset}`));
      if (items.length > 0) yield items;
      if (items.length < limit) return;
    }
  }

  /** All products, one by one, as they come, without holding the list in memory. */
  async *products() {
    const answer = await this.send('GET', '/api/v1/shop/products');
    if (!answer.ok) await this.read(answer);
    let rest = '';
    for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
      rest += text;
      let end = 0;
      // A product has no objects inside, but its name may have braces.
      for (const { 0: found, index } of rest.matchAll(/\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}/g)) {
        yield JSON.parse(found);
        end = index + found.length;
      }
      rest = rest.slice(end);
    }
  }

  /** Sends a request, and again where the shop asks to come back later. */
  async send(method, path, { headers = {}, body } = {}) {
    for (let attempt = 1; ; attempt++) {
      const answer = await fetch(new URL(path.startsWith('/') ? this.#baseUrl + path : path), { method, headers, body });
      if (!AGAIN_LATER.has(answer.status) || attempt === ATTEMPTS) return answer;
      await answer.body?.cancel();
      await seconds(Number(answer.headers.get('Retry-After') ?? 1));
    }
  }

  /** The body of an answer; throws why it was refused. */
  async read(answer) {
    const body = await answer.json();
    if (answer.ok) return body;
    const reason = body.detail ?? body.data;
    throw new Refused(answer.status, Array.isArray(reason) ? reason.map(({ loc, msg }) => `${loc.at(-1)}: ${msg}`).join('; ') : reason);
  }

  // Credentials run out, or are ended by somebody else: signing in again, once, is worth a try.
  async #ask(method, path, request = {}) {
    const send = () => this.send(method, path, { ...request, headers: { ...request.headers, ...this.#credentials } });
    let answer = await send();
    if (answer.status === 401 && this.#credentials) {
      await answer.body?.cancel();
      this.#credentials = await this.#way.signIn(this, this.#user);
      answer = await send();
    }
    return this.read(answer);
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
