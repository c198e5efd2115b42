import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A file of the pages, as it is sent. */
export interface PageFile {
  readonly text: string;
  readonly mediaType: 'text/html' | 'text/javascript' | 'text/css';
  /** Entity tag (RFC 9110, 8.8.3), quotes included. */
  readonly tag: string;
}

/** The pages by their path. */
export const PAGES = {
  '/auth/login': read(new URL('./files/login.html', import.meta.url), 'text/html'),
  '/auth/verify-email': read(new URL('./files/verify-email.html', import.meta.url), 'text/html'),
  '/auth/reset-password': read(new URL('./files/reset-password.html', import.meta.url), 'text/html'),
  '/app/': read(new URL('./files/app.html', import.meta.url), 'text/html'),
  '/wallet/': read(new URL('./files/wallet.html', import.meta.url), 'text/html'),
} as const satisfies Readonly<Record<string, PageFile>>;

/** Scripts and styles of the pages, by their name under `/auth/files/`. */
export const PAGE_FILES: ReadonlyMap<string, PageFile> = new Map(
  Object.entries({
    'app.js': read(new URL('./files/app.js', import.meta.url), 'text/javascript'),
    'page.js': read(new URL('./files/page.js', import.meta.url), 'text/javascript'),
    'login.js': read(new URL('./files/login.js', import.meta.url), 'text/javascript'),
    'proof.js': read(new URL('./files/proof.js', import.meta.url), 'text/javascript'),
    'reset-password.js': read(new URL('./files/reset-password.js', import.meta.url), 'text/javascript'),
    'style.css': read(new URL('./files/style.css', import.meta.url), 'text/css'),
    'verify-email.js': read(new URL('./files/verify-email.js', import.meta.url), 'text/javascript'),
    'wallet.js': read(new URL('./files/wallet.js', import.meta.url), 'text/javascript'),
  }),
);

function read(url: URL, mediaType: PageFile['mediaType']): PageFile {
  const text = readFileSync(url, 'utf8');
  return { text, mediaType, tag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` };
}
