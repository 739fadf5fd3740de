import { useQuery } from '@apollo/client/react';
import { Link, useLocation, useParams } from 'react-router';
import { AddItemButton } from '../account/AddItemButton.tsx';
import { NotFoundPage } from '../app/NotFoundPage.tsx';
import { PageFailure } from '../app/PageFailure.tsx';
import { PageHeading } from '../app/PageHeading.tsx';
import { graphql } from '../gql/index.ts';
import { Instant } from '../ui/Instant.tsx';
import { Loading } from '../ui/Loading.tsx';
import { Barcode } from './Barcode.tsx';
import { Price } from './Price.tsx';
import { ProductPicture } from './ProductPicture.tsx';
import { RELOADED } from './product-changes.ts';
import './catalogue.css';

const ProductDocument = graphql(`
  query Product($pk: ID!) {
    product(pk: $pk) {
      id
      pk
      name
      price
      barcode
      createdAt
      updatedAt
    }
  }
`);

/** One product, by its primary key. */
export function ProductPage() {
  const { pk = '' } = useParams();
  const { state } = useLocation();
  const { data, error, refetch } = useQuery(ProductDocument, {
    variables: { pk },
    context: RELOADED,
  });

  if (error) return <PageFailure title="Product" error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading what="the product" />;
  const { product } = data;
  if (!product) return <NotFoundPage what="product" />;

  return (
    <article className="product">
      <ProductPicture name={product.name} />
      <div className="product-facts">
        <Link className="back-link" to={{ pathname: '/', search: searchIn(state) }}>
          ← Catalogue
        </Link>
        <PageHeading title={product.name} />
        <Price amount={product.price} />
        <AddItemButton name={product.name} />
        <Barcode code={product.barcode} />
        <dl>
          <dt>Number</dt>
          <dd>{product.pk}</dd>
          <dt>Added</dt>
          <dd>
            <Instant at={product.createdAt} />
          </dd>
          {product.updatedAt !== product.createdAt && (
            <>
              <dt>Changed</dt>
              <dd>
                <Instant at={product.updatedAt} />
              </dd>
            </>
          )}
        </dl>
      </div>
    </article>
  );
}

/** The search of the catalogue, for the link back. */
function searchIn(state: unknown): string {
  const search =
    typeof state === 'object' && state !== null && 'search' in state ? state.search : undefined;
  return typeof search === 'string' ? search : '';
}
