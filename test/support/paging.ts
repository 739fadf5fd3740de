import { expect } from './jest.ts';

/** The parts of a page that every connection has. */
interface PageAnswer {
  totalCount: number;
  edges: { cursor: string }[];
  pageInfo: {
    hasPreviousPage: boolean;
    hasNextPage: boolean;
    startCursor: string;
    endCursor: string;
  };
}

/**
 * Pages through a list of five by twos, to its end and back. Checks each page's info and returns
 * the pages.
 */
export async function walkFiveByTwos<Page extends PageAnswer>(
  page: (args: object) => Promise<Page>,
): Promise<Page[]> {
  const first = await page({ first: 2 });
  const second = await page({ first: 2, after: first.pageInfo.endCursor });
  const third = await page({ first: 2, after: second.pageInfo.endCursor });
  const back = await page({ last: 2, before: third.pageInfo.startCursor });
  const start = await page({ last: 3, before: back.pageInfo.startCursor });
  const walked = [first, second, third, back, start];
  expect(walked.map(({ pageInfo }) => [pageInfo.hasPreviousPage, pageInfo.hasNextPage])).toEqual([
    [false, true],
    [true, true],
    [true, false],
    [true, true],
    [false, true],
  ]);
  expect(walked.map(({ totalCount }) => totalCount)).toEqual([5, 5, 5, 5, 5]);
  expect(walked.map(({ edges }) => [edges.at(0)?.cursor, edges.at(-1)?.cursor])).toEqual(
    walked.map(({ pageInfo }) => [pageInfo.startCursor, pageInfo.endCursor]),
  );
  return walked;
}
