import { modulesOf } from './ean13.ts';

const HEIGHT = 40;
/** Number of light modules on each side, which scanners need. */
const QUIET = 11;

/** A barcode as bars and digits. */
export function Barcode({ code }: { code: string }) {
  const modules = modulesOf(code);
  return (
    <figure className="barcode">
      <svg viewBox={`0 0 ${modules.length + 2 * QUIET} ${HEIGHT}`} aria-hidden="true">
        {Array.from(modules.matchAll(/1+/g), ({ 0: bar, index }) => (
          <rect key={index} x={QUIET + index} y="4" width={bar.length} height={HEIGHT - 8} />
        ))}
      </svg>
      <figcaption>{code}</figcaption>
    </figure>
  );
}
