import { useQuery } from '@apollo/client/react';
import { PageHeading } from '../app/PageHeading.tsx';
import { graphql } from '../gql/index.ts';
import { Failure } from '../ui/Failure.tsx';
import { LoadMore } from '../ui/LoadMore.tsx';
import { Loading } from '../ui/Loading.tsx';
import { CatalogueControls } from './CatalogueControls.tsx';
import { ProductCard } from './ProductCard.tsx';
import { useCatalogueAddress } from './useCatalogueAddress.ts';
import { RELOADED } from './product-changes.ts';
import './catalogue.css';

const CatalogueDocument = graphql(`
  query Catalogue($filter: ProductFilter, $orderBy: ProductOrder!, $after: String) {
    products(first: 24, after: $after, filter: $filter, orderBy: $orderBy) {
      totalCount
      edges {
        cursor
        node {
          pk
          ...ProductCard
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

/** The catalogue with search and order; scrolling loads more. */
export function CataloguePage() {
  const { search, ordering, setSearch, setOrdering } = useCatalogueAddress();
  const variables = { filter: search === '' ? null : { search }, orderBy: ordering.order };
  const { data, previousData, error, refetch, fetchMore } = useQuery(CatalogueDocument, {
    variables,
    context: RELOADED,
  });
  // During a search, the previous results stay visible.
  const found = data?.products;
  const shown = found ?? previousData?.products;

  return (
    <>
      <PageHeading title="Catalogue" />
      <CatalogueControls
        search={search}
        ordering={ordering}
        onSearch={setSearch}
        onOrdering={setOrdering}
      />
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      {!shown && !error && <Loading what="the catalogue" />}
      <p className="catalogue-count" role="status">
        {found && countOf(found.edges.length, found.totalCount)}
      </p>
      {shown && (
        <ul className="catalogue" aria-busy={!found}>
          {shown.edges.map(({ node }) => (
            <li key={node.pk}>
              <ProductCard product={node} />
            </li>
          ))}
        </ul>
      )}
      {found?.pageInfo.hasNextPage && (
        <LoadMore
          key={`${ordering.name} ${search}`}
          onMore={() => fetchMore({ variables: { after: found.pageInfo.endCursor ?? null } })}
        />
      )}
    </>
  );
}

function countOf(shown: number, total: number): string {
  if (total === 0) return 'No products found. Try fewer words.';
  const products = total === 1 ? '1 product' : `${total.toLocaleString('en-GB')} products`;
  return shown === total ? products : `${shown} of ${products}`;
}
