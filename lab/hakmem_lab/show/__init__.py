"""How it is shown: tables, pictures, pages, sentences, figures in documents."""
