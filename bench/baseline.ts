import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Pool } from 'pg';
import { to } from 'pg-copy-streams';

// The baseline: the same bytes by node:http, pg with one prepared statement per read, and
// JSON.stringify. No router, no checks, no credentials: a header has the user.

interface Product {
  pk: number | string;
  name: string;
  barcode: string;
  price: string;
}

type Handler = (req: IncomingMessage, url: string, res: ServerResponse) => Promise<unknown>;

const connectionString = process.env['DATABASE_URL'];
const pool = new Pool({ connectionString, max: 10 });
const count = Number(
  (await pool.query<{ count: string }>('select count(*) from product')).rows[0]?.count,
);

const page = (limit: number) => ({
  name: `page${limit}`,
  text: `select pk, name, barcode, price from product where pk > $1 order by pk limit ${limit}`,
});
const PAGE_AND_ONE = page(11);
const PAGE = page(10);
const ONE = { name: 'one', text: 'select pk, name, barcode, price from product where pk = $1' };
const USER = {
  name: 'user',
  text: 'select pk, username, email, full_name, disabled from "user" where pk = $1',
};
const ITEMS = {
  name: 'items',
  text: 'select item_id from item where owner_pk = $1 order by pk limit 6',
};
const BLOG = {
  name: 'blog',
  text: `select title, username from blog_entry join "user" on "user".pk = creator_pk
    where creator_pk = $1 and published order by blog_entry.created_at desc, blog_entry.pk desc limit 6`,
};
const INSERT = {
  name: 'insert',
  text: `insert into product (name, barcode, price, created_at, updated_at) values ($1, $2, $3, now(), now()) returning pk, name, barcode, price`,
};

const handlers: Record<string, Handler> = {
  '/readyz': async () => ({ status: 'ok' }),
  '/graphql/page': async (req) => {
    const { variables } = (await read(req)) as { variables: { after: string } };
    const [fingerprint, after] = JSON.parse(
      Buffer.from(variables.after, 'base64url').toString(),
    ) as [string, number];
    const { rows } = await pool.query<Product>({ ...PAGE_AND_ONE, values: [after] });
    const edges = rows.slice(0, 10).map((row) => ({
      cursor: Buffer.from(JSON.stringify([fingerprint, Number(row.pk)])).toString('base64url'),
      node: { pk: String(row.pk), name: row.name, barcode: row.barcode, price: Number(row.price) },
    }));
    return {
      data: {
        products: {
          edges,
          pageInfo: { hasNextPage: rows.length > 10, endCursor: edges.at(-1)?.cursor ?? null },
        },
      },
    };
  },
  '/graphql/product': async (req) => {
    const { variables } = (await read(req)) as { variables: { pk: string } };
    const { rows } = await pool.query<Product>({ ...ONE, values: [variables.pk] });
    const [row] = rows;
    return {
      data: {
        product: row
          ? { pk: String(row.pk), name: row.name, barcode: row.barcode, price: Number(row.price) }
          : null,
      },
    };
  },
  '/graphql/create': async (req) => {
    const { variables } = (await read(req)) as { variables: { input: Product } };
    const { pk, name, barcode, price } = await insert(variables.input);
    return { data: { createProduct: { pk: String(pk), name, barcode, price: Number(price) } } };
  },
  '/graphql/me': async (req) => {
    await read(req);
    const pk = Number(req.headers['x-user']);
    const [users, items, blog] = await Promise.all([
      pool.query<{ username: string; email: string }>({ ...USER, values: [pk] }),
      pool.query<{ item_id: string }>({ ...ITEMS, values: [pk] }),
      pool.query<{ title: string; username: string }>({ ...BLOG, values: [pk] }),
    ]);
    return {
      data: {
        me: {
          username: users.rows[0]?.username,
          email: users.rows[0]?.email,
          items: { nodes: items.rows.slice(0, 5).map(({ item_id: itemId }) => ({ itemId })) },
          blog: {
            nodes: blog.rows
              .slice(0, 5)
              .map(({ title, username }) => ({ title, creator: { username } })),
          },
        },
      },
    };
  },
  '/users/me/': async (req) => {
    const { rows } = await pool.query<{
      username: string;
      email: string;
      full_name: string;
      disabled: unknown;
    }>({
      ...USER,
      values: [Number(req.headers['x-user'])],
    });
    const { username, email, full_name, disabled } = rows[0] ?? {};
    return { username, email, full_name, disabled: String(disabled).startsWith('t') };
  },
  '/api/v2/shop/products': async (_req, url) => {
    const number = Number(url.slice(url.indexOf('=') + 1));
    const { rows } = await pool.query<Product>({ ...PAGE, values: [(number - 1) * 10] });
    const base = 'http://shop.example/api/v2/shop/products?page=';
    return {
      items: rows.map(plain),
      count,
      next: number * 10 < count ? base + String(number + 1) : null,
      previous: number > 1 ? base + String(number - 1) : null,
    };
  },
  '/api/v1/shop/product/': async (req, url, res) => {
    if (req.method === 'POST') {
      res.statusCode = 201;
      return plain(await insert((await read(req)) as Product));
    }
    const { rows } = await pool.query<Product>({
      ...ONE,
      values: [url.slice(url.lastIndexOf('/') + 1)],
    });
    return rows.map(plain)[0];
  },
};

createServer((req, res) => {
  void answer(req, res);
}).listen(Number(process.env['PORT']), '127.0.0.1');

async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const url = req.url ?? '';
  if (url === '/api/v1/shop/products') return copy(res);
  const path = url.startsWith('/api/v1/shop/product/')
    ? '/api/v1/shop/product/'
    : (url.split('?')[0] ?? '');
  const work = String(req.headers['x-work'] ?? '');
  const handler = handlers[path === '/graphql' ? `/graphql/${work}` : path];
  // Apollo Server ends its responses with a line feed.
  const text = JSON.stringify(await handler?.(req, url, res)) + (path === '/graphql' ? '\n' : '');
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', Buffer.byteLength(text));
  res.end(text);
}

async function insert({ name, barcode, price }: Product): Promise<Product> {
  const { rows } = await pool.query<Product>({ ...INSERT, values: [name, barcode, price] });
  return rows[0] as Product;
}

function plain({ pk, name, barcode, price }: Product) {
  return { pk: Number(pk), name, barcode, price: Number(price) };
}

function read(req: IncomingMessage): Promise<unknown> {
  return new Promise((done, fail) => {
    let text = '';
    req.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    req.on('end', () => done(JSON.parse(text))).on('error', fail);
  });
}

// Streams the whole catalogue as JSON by one COPY statement, one line per product.
async function copy(res: ServerResponse): Promise<void> {
  const client = await pool.connect();
  const stream = client.query(
    to(
      `copy (select json_build_object('pk', pk, 'name', name, 'barcode', barcode, 'price', price) from product order by pk) to stdout`,
    ),
  );
  stream.on('end', () => client.release());
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  stream.pipe(res);
}
