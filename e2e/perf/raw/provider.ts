import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';

/**
 * An OpenID provider in a process of its own, which takes everyone for Grace and asks nothing. It says its issuer, and serves once it
 * was told the addresses of its clients as JSON.
 */
const [clientId, clientSecret] = ['bench', 'a secret of the provider'];
const person = { sub: 'grace', email: 'grace@corp.example', email_verified: true, name: 'Grace Hopper' };
let serve = (_request: IncomingMessage, response: ServerResponse): unknown => response.writeHead(503).end();
const server = createServer((request, response) => void serve(request, response));
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

process.on('message', (message) => {
  const redirect_uris = JSON.parse(String(message));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris }],
    claims: { email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: () => ({ accountId: person.sub, claims: () => person }),
    pkce: { required: () => true },
  });
  const callback = provider.callback();
  const agree = async (request: IncomingMessage, response: ServerResponse) => {
    const grant = new provider.Grant({ accountId: person.sub, clientId });
    grant.addOIDCScope('openid email profile');
    const result = { login: { accountId: person.sub }, consent: { grantId: await grant.save() } };
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  };
  serve = (request, response) =>
    request.url?.startsWith('/interaction/') === true
      ? agree(request, response)
      : callback(request, response);
  process.send?.(JSON.stringify({ clientId, clientSecret }));
});
