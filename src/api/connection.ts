import { ArgsType, Field, Int, ObjectType, type ClassType } from 'type-graphql';
import type { Page, PageArgs } from '../pagination/keyset.ts';

/** Where a page stands in its list (Relay cursor connections specification). */
@ObjectType({ simpleResolvers: true, description: 'Where a page stands in its list.' })
class PageInfo {
  constructor(private readonly page: Page<unknown>) {}

  @Field(() => Boolean, { description: 'Whether there is more after this page.' })
  get hasNextPage(): Promise<boolean> {
    return this.page.hasNextPage();
  }

  @Field(() => Boolean, { description: 'Whether there is more before this page.' })
  get hasPreviousPage(): Promise<boolean> {
    return this.page.hasPreviousPage();
  }

  @Field(() => String, { nullable: true, description: 'Cursor of the first edge; null on an empty page.' })
  get startCursor(): string | null {
    return this.page.edges.at(0)?.cursor ?? null;
  }

  @Field(() => String, { nullable: true, description: 'Cursor of the last edge; null on an empty page.' })
  get endCursor(): string | null {
    return this.page.edges.at(-1)?.cursor ?? null;
  }
}

/** The arguments that every connection takes. */
@ArgsType()
export class ConnectionArgs implements PageArgs {
  @Field(() => Int, { nullable: true, description: 'How many from the start, 1 to 100; 20 where neither `first` nor `last` is given.' })
  first?: number;

  @Field(() => String, { nullable: true, description: 'Only what comes after this cursor.' })
  after?: string;

  @Field(() => Int, { nullable: true, description: 'How many from the end, 1 to 100.' })
  last?: number;

  @Field(() => String, { nullable: true, description: 'Only what comes before this cursor.' })
  before?: string;
}

/** One page of a list, as a value of a connection type. */
export interface Connection<T> {
  readonly edges: { cursor: string; node: T }[];
  readonly nodes: T[];
  readonly pageInfo: PageInfo;
  readonly totalCount: Promise<number>;
}

/** The connection and edge types of a node type, and the way from a page to a value of them. */
export function connectionType<T extends object>(type: ClassType<T>): { new (page: Page<T>): Connection<T> } {
  const { name } = type;

  @ObjectType(`${name}Edge`, { simpleResolvers: true, description: `${withArticle(name)} in a list, with its place.` })
  class Edge {
    @Field(() => String, { description: 'The place in the list, for `after` and `before`.' })
    cursor!: string;

    @Field(() => type, { description: `The ${name}.` })
    node!: T;
  }

  @ObjectType(`${name}Connection`, { simpleResolvers: true, description: `One page of a list of ${name}.` })
  class TypedConnection implements Connection<T> {
    constructor(private readonly page: Page<T>) {}

    @Field(() => [Edge], { description: 'The page, each with its place.' })
    get edges(): Edge[] {
      return this.page.edges;
    }

    @Field(() => [type], { description: 'The page, without places.' })
    get nodes(): T[] {
      return this.page.edges.map(({ node }) => node);
    }

    @Field(() => PageInfo, { description: 'Where the page stands in the list.' })
    get pageInfo(): PageInfo {
      return new PageInfo(this.page);
    }

    @Field(() => Int, { description: 'How many there are in the whole list; counted only when asked for.' })
    get totalCount(): Promise<number> {
      return this.page.totalCount();
    }
  }

  return TypedConnection;
}

// A User is spoken with a consonant.
function withArticle(name: string): string {
  return `${/^[AEIO]/.test(name) ? 'An' : 'A'} ${name}`;
}
