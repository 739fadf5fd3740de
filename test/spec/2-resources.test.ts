import { expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const LISTS = ['/api/v1/shop/products', '/api/v2/shop/products'];

test('2 Product.pk is an integer that the service assigns, whatever the body says', async () => {
  const json = { pk: 77, id: 77, name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };
  const answer = await create(json);
  expect(answer.status).toBe(201);
  expect(answer.body.pk).toBe(1);
});

test('2 Product.pk is used in the path of the detail endpoint', async () => {
  const { pk } = await shop.makeProduct();
  const answer = await shop.rest('GET', `/api/v1/shop/product/${pk}`);
  expect(answer.body.pk).toBe(pk);
});

test.each(['name', 'barcode', 'price'])('2 Product.%s is required on create', async (field) => {
  const answer = await create({ name: 'Walnut tray', barcode: '4006381333931', price: 12.5, [field]: undefined });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({ detail: [{ type: 'missing', loc: ['body', field], msg: 'Field required' }] });
});

test('2 the fields that are required on create are named all at once', async () => {
  const answer = await create({});
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: ['name', 'barcode', 'price'].map((field) => ({ type: 'missing', loc: ['body', field], msg: 'Field required' })),
  });
});

test.each(['name', 'barcode'])('2 Product.%s is a string', async (field) => {
  const answer = await create({ name: 'Walnut tray', barcode: '4006381333931', price: 12.5, [field]: 4006381333931 });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({ detail: [{ type: 'string_type', loc: ['body', field], msg: 'Input should be a valid string' }] });
});

test('2 Product.barcode is in EAN-13 format, leading zeros included', async () => {
  const { pk } = await shop.makeProduct({ barcode: '0036000291452' });
  const answer = await shop.rest('GET', `/api/v1/shop/product/${pk}`);
  expect(answer.body.barcode).toBe('0036000291452');
});

test('2 Product.price is a number, even where it was given as text', async () => {
  const answer = await create({ name: 'Walnut tray', barcode: '4006381333931', price: '12.50' });
  expect(answer.body.price).toBe(12.5);
});

test.each(LISTS)('2 the items of %s carry pk, name, barcode and price', async (path) => {
  const { pk } = await shop.makeProduct({ name: 'Walnut tray', barcode: '4006381333931', price: '12.50' });
  const { body } = await shop.rest('GET', path);
  expect(Array.isArray(body) ? body : body.items).toEqual([{ pk, name: 'Walnut tray', barcode: '4006381333931', price: 12.5 }]);
});

test('2 the product detail carries pk, name, barcode and price', async () => {
  const { pk } = await shop.makeProduct({ name: 'Walnut tray', barcode: '4006381333931', price: '12.50' });
  const answer = await shop.rest('GET', `/api/v1/shop/product/${pk}`);
  expect(answer.body).toEqual({ pk, name: 'Walnut tray', barcode: '4006381333931', price: 12.5 });
});

test('2 User leaves with username, email, full_name and disabled', async () => {
  const user = await shop.makeUser({ username: 'ann', email: 'ann@shop.example', fullName: 'Ann Archer' });
  const answer = await shop.rest('GET', '/users/me/', { as: user });
  expect(answer.body).toEqual({ username: 'ann', email: 'ann@shop.example', full_name: 'Ann Archer', disabled: false });
});

test('2 User.email and User.full_name are optional', async () => {
  const user = await shop.makeUser({ username: 'ann', email: null, fullName: null });
  const answer = await shop.rest('GET', '/users/me/', { as: user });
  expect(answer.body).toEqual({ username: 'ann', email: null, full_name: null, disabled: false });
});

test('2 User.disabled is true for an inactive user', async () => {
  const caller = await shop.makeUser({ username: 'ann', scopes: ['users:read'] });
  await shop.makeUser({ username: 'zoe', email: null, disabled: true });
  const answer = await shop.rest('GET', '/api/users?limit=1&offset=1', { as: caller });
  expect(answer.body.items).toEqual([{ username: 'zoe', email: null, full_name: null, disabled: true }]);
});

test.each([
  ['/users/me/', {}],
  ['/users/me/items/', {}],
  ['/blog', {}],
  ['/api/users', {}],
  ['/api/users?page=1', {}],
  [
    `/graphql?query=${encodeURIComponent('{ me { username } __schema { types { name fields { name } } } }')}`,
    { 'apollo-require-preflight': '1' },
  ],
])('2 User.hashed_password is never returned by GET %s, nor its value', async (path, headers) => {
  const user = await shop.makeUser({ scopes: ['users:read'] });
  await shop.makeItem(user);
  await shop.makeEntry(user);
  const answer = await shop.rest('GET', path, { as: user, headers });
  expect(answer.status).toBe(200);
  expect(answer.text).toContain(user.username);
  expect(whole(answer)).not.toMatch(/hashed_?password/i);
  expect(whole(answer)).not.toContain(user.hashedPassword);
});

test.each(['/token', '/login'])('2 User.hashed_password is never returned by POST %s', async (path) => {
  const user = await shop.makeUser();
  const answer = await shop.rest('POST', path, { form: { username: user.username, password: PASSWORD } });
  expect(answer.status).toBe(200);
  expect(whole(answer)).not.toContain(user.hashedPassword);
});

test('2 User.hashed_password is internal: a login takes it for no password', async () => {
  const { username, hashedPassword } = await shop.makeUser();
  const answer = await shop.rest('POST', '/token', { form: { username, password: String(hashedPassword) } });
  expect(answer.status).toBe(401);
});

test('2 Token response is access_token, a signed JWT, and token_type bearer', async () => {
  const { username } = await shop.makeUser();
  const answer = await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
  expect(answer.body).toEqual({ access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]{43}$/), token_type: 'bearer' });
});

test.each(['username', 'password'])('2 LoginRequest.%s is a string that the session login needs', async (field) => {
  const good = { username: 'ann', password: PASSWORD };
  const missing = await shop.rest('POST', '/session/login', { json: { ...good, [field]: undefined } });
  const number = await shop.rest('POST', '/session/login', { json: { ...good, [field]: 12345678 } });
  expect([missing.status, number.status]).toEqual([422, 422]);
  expect(missing.body).toEqual({ detail: [{ type: 'missing', loc: ['body', field], msg: 'Field required' }] });
  expect(number.body).toEqual({ detail: [{ type: 'string_type', loc: ['body', field], msg: 'Input should be a valid string' }] });
});

test('2 LogoutRequest.session_key is a string that the session logout needs', async () => {
  const missing = await shop.rest('POST', '/session/logout', { json: {} });
  const number = await shop.rest('POST', '/session/logout', { json: { session_key: 1 } });
  expect([missing.status, number.status]).toEqual([422, 422]);
  expect(missing.body).toEqual({ detail: [{ type: 'missing', loc: ['body', 'session_key'], msg: 'Field required' }] });
  expect(number.body).toEqual({ detail: [{ type: 'string_type', loc: ['body', 'session_key'], msg: 'Input should be a valid string' }] });
});

test('2 LoginResponse is session_key', async () => {
  const { username } = await shop.makeUser();
  const answer = await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } });
  expect(answer.body).toEqual({ session_key: expect.stringMatching(/^[\w-]{43}$/) });
});

test('2 UnauthorizedResponse is data', async () => {
  const answer = await shop.rest('POST', '/session/logout', { json: { session_key: 'none' } });
  expect(answer.status).toBe(401);
  expect(answer.body).toEqual({ data: 'Invalid session key' });
});

test('2 OkResponse is data', async () => {
  const { username } = await shop.makeUser();
  const { body: json } = await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } });
  const answer = await shop.rest('POST', '/session/logout', { json });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ data: 'Logout successful' });
});

test('2 Item of the current user is item_id and owner, the username', async () => {
  const user = await shop.makeUser({ username: 'ann' });
  await shop.makeItem(user, 'lantern');
  const answer = await shop.rest('GET', '/users/me/items/', { as: user });
  expect(answer.body).toEqual([{ item_id: 'lantern', owner: 'ann' }]);
});

test('2 Blog entry is title, body, published and creator, an object with username and email', async () => {
  const user = await shop.makeUser({ username: 'ann', email: 'ann@shop.example' });
  await shop.makeEntry(user, { title: 'Opening day', body: 'The doors are open.', published: false });
  const answer = await shop.rest('GET', '/blog', { as: user });
  expect(answer.body).toEqual([
    { title: 'Opening day', body: 'The doors are open.', published: false, creator: { username: 'ann', email: 'ann@shop.example' } },
  ]);
});

async function create(json: object): Promise<Answer> {
  return shop.rest('POST', '/api/v1/shop/product/', { as: await shop.makeUser({ password: null, scopes: ['products:write'] }), json });
}

function whole({ headers, text }: Answer): string {
  return JSON.stringify([...headers]) + text;
}
