import { memo } from 'react';
import { GRID, pictureOf } from './picture.ts';

const TILE = 40;
const SIZE = GRID * TILE;
/** So thin a line closes the seam between tiles of one colour. */
const SEAM = 0.3;

/** A picture generated from the name. It has no further content, so screen readers skip it. */
export const ProductPicture = memo(function ProductPicture({ name }: { name: string }) {
  const { background, tiles } = pictureOf(name);
  return (
    <svg className="product-picture" viewBox={`0 0 ${SIZE} ${SIZE}`} aria-hidden="true">
      <rect width={SIZE} height={SIZE} fill={background} />
      {tiles.map(({ column, row, path, turn, colour }) => (
        <path
          key={`${column} ${row}`}
          d={path}
          fill={colour}
          stroke={colour}
          strokeWidth={SEAM}
          transform={`translate(${column * TILE} ${row * TILE}) rotate(${turn} ${TILE / 2} ${TILE / 2})`}
        />
      ))}
    </svg>
  );
});
