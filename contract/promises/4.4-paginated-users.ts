import { isDeepStrictEqual } from 'node:util';
import { memberOf } from '../answer.ts';
import { challenges, expectOf, isError, listOf, pageOf } from '../expectations.ts';
import { section } from '../promised.ts';
import { askPage, needsEntries, USERS } from './common.ts';

/** The generic example of a list in pages. */
export const paginatedUsers = section('4.4', 'Generic paginated example', [
  {
    id: 'limit-offset',
    row: `GET ${USERS}`,
    level: 'interface',
    needs: ['user'],
    says: 'limit and offset choose a part of the users.',
    check: async (at) => {
      await needsEntries(at, USERS, 2);
      const both = await askPage(at, USERS, 'limit=2&offset=0');
      const second = await askPage(at, USERS, 'limit=1&offset=1');
      expectOf(both, 'two users', listOf(both).length === 2);
      const [user] = listOf(second);
      expectOf(second, 'the second of the first two users', memberOf(user, 'username') === memberOf(listOf(both)[1], 'username'));
    },
  },
  {
    id: 'page',
    row: `GET ${USERS}`,
    level: 'interface',
    needs: ['user'],
    says: 'page chooses a page of users.',
    check: async (at) => {
      await needsEntries(at, USERS, 6);
      const first = listOf(await askPage(at, USERS, 'page=1'));
      const answer = await askPage(at, USERS, 'page=2');
      const names = new Set(first.map((user) => memberOf(user, 'username')));
      const second = listOf(answer);
      const isNew = second.length > 0 && second.every((user) => !names.has(memberOf(user, 'username')));
      expectOf(answer, 'other users than on the first page', isNew);
    },
  },
  {
    id: 'envelope',
    row: `GET ${USERS}`,
    level: 'decision',
    needs: ['user'],
    says: 'A page is items, count, next and previous.',
    check: async (at) => {
      for (const query of ['page=1', 'limit=2&offset=0']) pageOf(await askPage(at, USERS, query));
    },
  },
  {
    id: 'default',
    row: `GET ${USERS}`,
    level: 'decision',
    needs: ['user'],
    says: 'Without parameters the first users come, as many as limit gives by default.',
    check: async (at) => {
      const part = pageOf(await askPage(at, USERS, 'offset=0'));
      const answer = await askPage(at, USERS, '');
      expectOf(answer, 'the users of offset=0', isDeepStrictEqual(pageOf(answer).items, part.items), 'others');
    },
  },
  {
    id: 'links',
    row: `GET ${USERS}`,
    level: 'decision',
    needs: ['user'],
    says: 'next leads to the page that follows.',
    check: async (at) => {
      await needsEntries(at, USERS, 6);
      const first = await askPage(at, USERS, 'page=1');
      const { next } = pageOf(first);
      expectOf(first, 'a next', next?.endsWith('?page=2') === true);
    },
  },
  {
    id: 'anonymous',
    row: `GET ${USERS}`,
    level: 'decision',
    needs: [],
    says: 'Without credentials the answer is 401 that the caller is not authenticated.',
    check: async (at) => {
      const answer = await at.ask('GET', USERS);
      isError(answer, 401, { detail: 'Not authenticated' });
      challenges(answer);
    },
  },
]);
