import { graphql } from 'relay-runtime';

/**
 * Documents of the tests of Relay. Not imported: the compiler of Relay reads it and writes
 * `__generated__`.
 *   npx relay-compiler@21.0.1 test/clients/relay/relay.config.json
 */
export default [
  graphql`
    query documentsCatalogueQuery($first: Int, $after: String, $last: Int, $before: String) {
      products(first: $first, after: $after, last: $last, before: $before)
        @connection(key: "Catalogue_products") {
        edges {
          node {
            id
            pk
            name
          }
        }
      }
    }
  `,
  graphql`
    query documentsProductQuery($id: ID!) {
      node(id: $id) {
        ... on Product {
          name
          price
        }
      }
    }
  `,
  graphql`
    query documentsMeQuery {
      me {
        username
      }
    }
  `,
  graphql`
    subscription documentsChangesSubscription {
      productChanged(kinds: [CHANGED]) {
        product {
          name
        }
      }
    }
  `,
];
