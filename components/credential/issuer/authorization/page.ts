import { createHash } from 'node:crypto';
import type { Approval } from './approve.ts';

const style = `:root{color-scheme:light dark;font-family:system-ui,sans-serif;line-height:1.5}
body{margin:0 auto;max-width:28rem;padding:1rem}
input,button{border:1px solid;border-radius:.4rem;box-sizing:border-box;font:inherit;padding:.5rem .7rem;width:100%}
button{margin-top:1rem}
.fault{color:light-dark(#a11212,#ff9d9d)}`;

const styleHash = createHash('sha256').update(style).digest('base64');

/**
 * The page runs nothing and loads nothing. Where its form may lead is not restricted: the answer sends the person to the
 * wallet, whose address is the wallet's own.
 */
export const pageHeaders = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
} as const;

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title><style>${style}</style></head>
<body><main><h1>${title}</h1>
${body}</main></body>
</html>
`;
}

/** The form that asks for the transaction code. */
export function codeForm(
  { length, isNumeric, description, triesLeft }: Extract<Approval, { kind: 'form' }>,
  { requestUri, clientId }: { readonly requestUri: string; readonly clientId: string },
): string {
  const fault =
    triesLeft === undefined
      ? ''
      : `<p class="fault" role="alert">This is not the code. ${triesLeft === 1 ? 'One try is' : `${triesLeft} tries are`} left.</p>\n`;
  const about = description === undefined ? '' : `<p>${escaped(description)}</p>\n`;
  const mode = isNumeric ? 'numeric' : 'text';
  return page(
    'Take your credential',
    `${fault}<p>Enter the code that you were sent with the offer.</p>
${about}<form method="post" action="authorize" autocomplete="off">
<input type="hidden" name="request_uri" value="${escaped(requestUri)}">
<input type="hidden" name="client_id" value="${escaped(clientId)}">
<label for="code">Code, ${length} characters</label>
<input id="code" name="tx_code" inputmode="${mode}" maxlength="${length}" required autofocus>
<button type="submit">Continue</button>
</form>
`,
  );
}

export const gonePage = page(
  'This request has ended',
  '<p>It was used before, or it took too long. Open the offer in your wallet again.</p>\n',
);
