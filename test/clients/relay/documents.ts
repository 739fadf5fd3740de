import { graphql } from 'relay-runtime';

/**
 * Documents of the tests of Relay. Not imported: the tests run the compiler of Relay, which reads
 * it.
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
    subscription documentsChangesSubscription {
      productChanged(kinds: [CHANGED]) {
        product {
          name
        }
      }
    }
  `,
];
