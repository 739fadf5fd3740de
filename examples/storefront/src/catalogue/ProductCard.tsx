import { Link, useLocation } from 'react-router';
import { type FragmentType, graphql, readFragment } from '../gql/index.ts';
import { Price } from './Price.tsx';
import { ProductPicture } from './ProductPicture.tsx';

const ProductCardFields = graphql(`
  fragment ProductCard on Product {
    id
    pk
    name
    price
  }
`);

/** A product in the catalogue. */
export function ProductCard({ product }: { product: FragmentType<typeof ProductCardFields> }) {
  const { pk, name, price } = readFragment(ProductCardFields, product);
  const { search } = useLocation();
  return (
    <Link className="product-card" to={`/products/${pk}`} state={{ search }}>
      <ProductPicture name={name} />
      <h2>{name}</h2>
      <Price amount={price} />
    </Link>
  );
}
