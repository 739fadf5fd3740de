import { NavLink, Link, Outlet, ScrollRestoration } from 'react-router';
import { CallerMenu } from '../session/CallerMenu.tsx';
import { useViewer } from '../session/viewer.ts';
import { Notices } from '../ui/Notices.tsx';
import icon from './icon.svg';

/** Header and notices of every page. */
export function Layout() {
  const viewer = useViewer();
  return (
    <>
      <a className="skip-link" href="#main">
        Skip to the page
      </a>
      <header className="site-header">
        <Link to="/" className="brand">
          <img src={icon} alt="" width="28" height="28" />
          Shopfront
        </Link>
        <nav aria-label="Shop">
          <NavLink to="/" end>
            Catalogue
          </NavLink>
          <NavLink to="/blog">Blog</NavLink>
          {viewer?.scopes.includes('products:write') && (
            <NavLink to="/products/new">New product</NavLink>
          )}
        </nav>
        <CallerMenu />
      </header>
      <main className="page" id="main" tabIndex={-1}>
        <Notices />
        <Outlet />
      </main>
      <ScrollRestoration />
    </>
  );
}
