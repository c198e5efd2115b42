import { execFileSync } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A root and an issuing authority of OpenSSL, in files of a directory. */
export interface OpenSslAuthority {
  /** PEM. */
  readonly root: string;
  readonly issuing: string;
  /** Judges the signature of a PKCS #10 request and issues a certificate for it, PEM; throws what OpenSSL says. */
  issue(csrPem: string): string;
  /** What `openssl verify` says of a chain below the root; the leaf is first, without the root. */
  verify(chain: readonly string[]): string;
}

/** Makes the two authorities below `directory`. */
export function createOpenSslAuthority(directory: string): OpenSslAuthority {
  const folder = mkdtempSync(join(directory, 'authority-'));
  const write = (file: string, content: string) => writeFileSync(join(folder, file), content);
  const read = (file: string) => readFileSync(join(folder, file), 'utf8');
  const run = (command: string, ...more: readonly string[]): string =>
    execFileSync('openssl', [...command.split(' '), ...more], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const key = (file: string) => run(`genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ${file}`);
  const authority = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n';
  write('authority.ext', authority);
  write('leaf.ext', 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n');
  key('root.key');
  run('req -new -key root.key -out root.csr -subj', '/C=DE/O=Test/CN=Root');
  run('x509 -req -in root.csr -key root.key -days 30 -extfile authority.ext -out root.pem');
  key('issuing.key');
  run('req -new -key issuing.key -out issuing.csr -subj', '/C=DE/O=Test/CN=Issuing');
  const below = '-days 20 -CAcreateserial';
  run(
    `x509 -req -in issuing.csr -CA root.pem -CAkey root.key ${below} -extfile authority.ext -out issuing.pem`,
  );
  return {
    root: read('root.pem'),
    issuing: read('issuing.pem'),
    issue: (csrPem) => {
      write('leaf.csr', csrPem);
      run('req -in leaf.csr -noout -verify');
      run(
        `x509 -req -in leaf.csr -CA issuing.pem -CAkey issuing.key ${below} -extfile leaf.ext -out leaf.pem`,
      );
      return read('leaf.pem');
    },
    verify: ([leaf = '', ...above]) => {
      write('chain-leaf.pem', leaf);
      write('chain-above.pem', above.join('\n'));
      return run('verify -CAfile root.pem -untrusted chain-above.pem chain-leaf.pem');
    },
  };
}

/** SHA-256 of a certificate in PEM, hexadecimal. */
export function certificateHash(pem: string): string {
  return createHash('sha256').update(new X509Certificate(pem).raw).digest('hex');
}
