import { ArgsType, Field, Int, ObjectType, type ClassType } from 'type-graphql';
import type { Page, PageArgs } from '../pagination/keyset.ts';
import { COUNT, Weight } from './weight.ts';

/** Position of a page in its list (Relay cursor connections specification). */
@ObjectType({ simpleResolvers: true, description: 'Position of a page in its list.' })
class PageInfo {
  constructor(private readonly page: Page<unknown>) {}

  @Field(() => Boolean, { description: 'Whether the list continues after this page.' })
  get hasNextPage(): boolean {
    return this.page.hasNextPage;
  }

  @Field(() => Boolean, { description: 'Whether the list has entries before this page.' })
  get hasPreviousPage(): boolean {
    return this.page.hasPreviousPage;
  }

  @Field(() => String, {
    nullable: true,
    description: 'Cursor of the first edge; null if the page is empty.',
  })
  get startCursor(): string | null {
    return this.page.edges.at(0)?.cursor ?? null;
  }

  @Field(() => String, {
    nullable: true,
    description: 'Cursor of the last edge; null if the page is empty.',
  })
  get endCursor(): string | null {
    return this.page.edges.at(-1)?.cursor ?? null;
  }
}

/** Arguments of every connection. */
@ArgsType()
export class ConnectionArgs implements PageArgs {
  @Field(() => Int, {
    nullable: true,
    description: 'Number of entries from the start, 1 to 100. Default: 20, unless `last` is given.',
  })
  first?: number;

  @Field(() => String, { nullable: true, description: 'Only entries after this cursor.' })
  after?: string;

  @Field(() => Int, { nullable: true, description: 'Number of entries from the end, 1 to 100.' })
  last?: number;

  @Field(() => String, { nullable: true, description: 'Only entries before this cursor.' })
  before?: string;
}

/** A page as the value of a connection type. */
export interface Connection<T> {
  readonly edges: { cursor: string; node: T }[];
  readonly nodes: T[];
  readonly pageInfo: PageInfo;
  readonly totalCount: Promise<number>;
}

/** Defines the connection and edge types of a node type. Returns the connection's class. */
export function connectionType<T extends object>(
  type: ClassType<T>,
): { new (page: Page<T>): Connection<T> } {
  const { name } = type;

  @ObjectType(`${name}Edge`, {
    simpleResolvers: true,
    description: `${withArticle(name)} in a list, with its cursor.`,
  })
  class Edge {
    @Field(() => String, { description: 'Cursor of this entry, for `after` and `before`.' })
    cursor!: string;

    @Field(() => type, { description: `The ${name}.` })
    node!: T;
  }

  @ObjectType(`${name}Connection`, {
    simpleResolvers: true,
    description: `One page of a list of ${name}.`,
  })
  class TypedConnection implements Connection<T> {
    constructor(private readonly page: Page<T>) {}

    @Field(() => [Edge], { description: 'Entries of the page with their cursors.' })
    get edges(): Edge[] {
      return this.page.edges;
    }

    @Field(() => [type], { description: 'Entries of the page without cursors.' })
    get nodes(): T[] {
      return this.page.edges.map(({ node }) => node);
    }

    @Field(() => PageInfo, { description: 'Position of the page in the list.' })
    get pageInfo(): PageInfo {
      return new PageInfo(this.page);
    }

    @Weight(COUNT)
    @Field(() => Int, {
      description: 'Number of entries in the whole list. Counted only when requested.',
    })
    get totalCount(): Promise<number> {
      return this.page.totalCount();
    }
  }

  return TypedConnection;
}

// U is left out, because User starts with a consonant sound.
function withArticle(name: string): string {
  return `${/^[AEIO]/.test(name) ? 'An' : 'A'} ${name}`;
}
