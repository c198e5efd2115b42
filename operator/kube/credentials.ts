/** Address and credentials of a cluster. */
export interface ClusterAccess {
  /** `https://host:port`, with a path where a proxy serves several clusters. */
  readonly server: string;
  readonly ca?: string | Uint8Array | undefined;
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  /** Name in the server's certificate, when it differs from the host. */
  readonly servername?: string | undefined;
  /** Disables the check of the server's certificate. */
  readonly skipVerify?: boolean | undefined;
  /** Value of the authorization header. */
  readonly authorization?: string | undefined;
}

/** Source of credentials. Tokens and certificates rotate, so it is read repeatedly. */
export interface ClusterCredentials {
  read(): Promise<ClusterAccess>;
}

/** Whether existing connections can be kept; the authorization header is sent with each call. */
export function isSameConnection(left: ClusterAccess, right: ClusterAccess): boolean {
  const bytes = (value: string | Uint8Array | undefined) =>
    value === undefined ? undefined : Buffer.from(value).toString('base64');
  return (
    left.server === right.server &&
    left.servername === right.servername &&
    left.skipVerify === right.skipVerify &&
    bytes(left.ca) === bytes(right.ca) &&
    bytes(left.cert) === bytes(right.cert) &&
    bytes(left.key) === bytes(right.key)
  );
}
