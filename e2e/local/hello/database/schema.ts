export interface GreetingTable {
  /** Subject of the person's tokens. */
  subject: string;
  greeting: string;
}

export interface HelloDatabase {
  greetings: GreetingTable;
}
